"""BPF programs: loaded through libbpf, compiled by `python -m switch.bpf.build`."""
