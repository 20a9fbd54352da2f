"""The controller under load: installs, batches, re-planning; over model switches, without Mininet."""
