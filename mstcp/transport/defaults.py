"""What a connection has where its application says nothing."""

from __future__ import annotations

SEND_QUEUE_BYTES = 1 << 18
"""What `try_write` fills where no send buffer was named."""
SCHEDULER = "weighted"
"""Where none is named: least delay at full load; scenarios of the paper name theirs."""
HARD_QUEUE_BYTES = 64 << 20
"""What `write` fills for an application that never waits for `drain`, before it gets BufferLimitExceeded."""
REORDER_BUFFER_BYTES = 256 << 20
RECONNECT_S = 5.0
"""How long a connection without a stream waits for one to come back."""
