"""What planners ask beyond one routing: priorities, upgrades, routing for several cases, segment lists."""
