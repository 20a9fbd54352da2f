"""docs/performance.md, made from measurements that are kept beside it in docs/results/performance."""
