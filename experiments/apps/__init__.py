"""Sources and sinks: the applications of an experiment, each a process of its own inside a host."""
