"""What clients use: the service layer, and REST and gRPC as two thin interfaces to it."""
