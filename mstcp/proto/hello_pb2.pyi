from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class Hello(_message.Message):
    __slots__ = ("version", "connection_id", "stream_id", "stream_count", "frame_payload_bytes", "nonce", "early_data", "least_version", "refusal", "priority", "records")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    CONNECTION_ID_FIELD_NUMBER: _ClassVar[int]
    STREAM_ID_FIELD_NUMBER: _ClassVar[int]
    STREAM_COUNT_FIELD_NUMBER: _ClassVar[int]
    FRAME_PAYLOAD_BYTES_FIELD_NUMBER: _ClassVar[int]
    NONCE_FIELD_NUMBER: _ClassVar[int]
    EARLY_DATA_FIELD_NUMBER: _ClassVar[int]
    LEAST_VERSION_FIELD_NUMBER: _ClassVar[int]
    REFUSAL_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    version: int
    connection_id: bytes
    stream_id: int
    stream_count: int
    frame_payload_bytes: int
    nonce: bytes
    early_data: bytes
    least_version: int
    refusal: int
    priority: int
    records: int
    def __init__(self, version: _Optional[int] = ..., connection_id: _Optional[bytes] = ..., stream_id: _Optional[int] = ..., stream_count: _Optional[int] = ..., frame_payload_bytes: _Optional[int] = ..., nonce: _Optional[bytes] = ..., early_data: _Optional[bytes] = ..., least_version: _Optional[int] = ..., refusal: _Optional[int] = ..., priority: _Optional[int] = ..., records: _Optional[int] = ...) -> None: ...
