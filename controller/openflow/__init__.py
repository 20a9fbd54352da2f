"""OpenFlow 1.3 by os-ken, which is imported nowhere else."""
