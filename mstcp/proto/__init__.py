"""The protocols as protobuf has them; `python -m mstcp.proto.generate` makes the modules."""
