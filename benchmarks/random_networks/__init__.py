"""Networks, workloads and protocols drawn by seeds, run simulated and in virtual time (`make networks`)."""
