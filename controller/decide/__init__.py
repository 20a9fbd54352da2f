"""What is to be done: admission, rates, re-routing, recovery, default routes and protection."""
