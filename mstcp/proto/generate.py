"""Generate the protobuf and gRPC modules: `python -m mstcp.proto.generate [--into DIR]`.

Needs grpcio-tools and mypy-protobuf (the `dev` extra). Imports come out relative to the package root
(`from mstcp.proto import control_pb2`).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = "mstcp/proto"
STORE = "controller/store"
"""What the controller's store speaks with etcd; its calls are made by name."""


def generate(into: Path) -> list[Path]:
    """Write the generated modules below `into` (where `mstcp/` and `controller/` are) and return their paths.

    Raises:
        RuntimeError: protoc failed; it has said why on standard error.
    """
    from grpc_tools import protoc  # type: ignore[import-untyped]  # a development tool

    outputs = [f"--python_out={into}", f"--pyi_out={into}"]
    stubs = Path(sys.executable).parent / "protoc-gen-mypy_grpc"
    services = [
        f"--grpc_python_out={into}",
        f"--plugin=protoc-gen-mypy_grpc={stubs}",
        f"--mypy_grpc_out=quiet:{into}",
    ]
    for proto, options in (
        (f"{FOLDER}/control.proto", outputs + services),
        (f"{STORE}/etcd.proto", outputs),
    ):
        status = protoc.main(["protoc", f"-I{ROOT}", *options, proto])
        if status != 0:
            raise RuntimeError(f"protoc failed on {proto} (status {status}); see its message above")
    # mypy-protobuf's stub of a service needs types-grpcio to check; its users are checked without.
    stub = into / FOLDER / "control_pb2_grpc.pyi"
    stub.write_text("# mypy: ignore-errors\n" + stub.read_text())
    return sorted(path for folder in (FOLDER, STORE) for path in (into / folder).glob("*_pb2*.py*"))


def main() -> None:
    """Run as a command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--into", type=Path, default=ROOT, help="default: this checkout")
    generate(parser.parse_args().into)


if __name__ == "__main__":
    main()
