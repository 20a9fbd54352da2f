"""Frame error rates of 802.11g's OFDM over white noise, as crates/netsim/src/wifi/errors/table.rs has them.

python -m benchmarks.frame_errors --frames 600   # half an hour

Each frame is scrambled data behind the convolutional code (133, 171), punctured, interleaved over 48
subcarriers, mapped with Gray code, and received with ideal knowledge of the channel: max-log bit metrics and
a Viterbi decoder (IEEE 802.11-2020, 17.3.5).
"""

from __future__ import annotations

import argparse
import itertools

import numpy as np
import numpy.typing as npt

Bits = npt.NDArray[np.int64]
Reals = npt.NDArray[np.float64]

MODES = {
    6: (1, "11"),
    12: (2, "11"),
    18: (2, "111001"),
    24: (4, "11"),
    36: (4, "111001"),
    48: (6, "1110"),
    54: (6, "111001"),
}
"""By Mbit/s: bits of a subcarrier, and which of the code's bits are sent."""
AMPLITUDES = {1: [-1, 1], 2: [-3, -1, 3, 1], 3: [-7, -5, -1, -3, 7, 5, 1, 3]}
"""Gray code along an axis, by its bits read as a number (tables 17-11 to 17-14)."""
GENERATORS = np.array([[1, 0, 1, 1, 0, 1, 1], [1, 1, 1, 1, 0, 0, 1]])
"""133 and 171: what each output adds up, the newest bit first."""
REGISTERS = np.arange(128)
"""The last seven bits, the newest in bit 6; the decoder's state is the oldest six, then the newest six."""
SIGNS = 2 * ((REGISTERS[:, None] >> np.arange(6, -1, -1)) @ GENERATORS.T % 2) - 1
TAIL_BITS = 6
BATCH = 100
STEP_DB = 0.5


def main() -> None:
    """Print each mode's curves, from where nearly all frames fail to where few do."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--frames", type=int, default=600, help="frames a point (default: 600)")
    frames = parser.parse_args().frames
    random = np.random.default_rng(1)
    for data_bytes, mbps in itertools.product((32, 1458), MODES):
        print(f"{data_bytes} bytes, {mbps} Mbit/s:", end="", flush=True)
        for snr_db in itertools.count(-6, STEP_DB):
            lost = lost_share(mbps, data_bytes, snr_db, frames, random)
            if lost < 0.999:
                print(f" ({snr_db:.1f}, {lost:.5f})", end="", flush=True)
            if lost < 0.003:
                break
        print()


def lost_share(mbps: int, data_bytes: int, snr_db: float, frames: int, random: np.random.Generator) -> float:
    """Return the share of frames that are lost."""
    lost = 0
    for begin in range(0, frames, BATCH):
        count = min(BATCH, frames - begin)
        data = random.integers(0, 2, (count, 8 * data_bytes))
        data = np.pad(data, ((0, 0), (0, TAIL_BITS)))
        subcarrier_bits, pattern = MODES[mbps]
        coded = encode(data)
        is_sent = np.resize([bit == "1" for bit in pattern], coded.shape[1])
        metrics = np.zeros(coded.shape)
        metrics[:, is_sent] = transmit(coded[:, is_sent], subcarrier_bits, snr_db, random)
        lost += int((decode(metrics) != data).any(axis=1).sum())
    return lost / frames


def encode(data: Bits) -> Bits:
    """Return two bits for each."""
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(data, ((0, 0), (6, 0))), 7, axis=1)
    coded: Bits = windows[..., ::-1] @ GENERATORS.T % 2
    return coded.reshape(len(data), -1)


def transmit(coded: Bits, subcarrier_bits: int, snr_db: float, random: np.random.Generator) -> Reals:
    """Return the metric of each bit behind mapper, noise and demapper, positive for 1."""
    symbol_bits = 48 * subcarrier_bits
    half = max(subcarrier_bits // 2, 1)
    # 17.3.5.7: first over the subcarriers, then over the bits of each.
    k = np.arange(symbol_bits)
    i = symbol_bits // 16 * (k % 16) + k // 16
    places = half * (i // half) + (i + symbol_bits - 16 * i // symbol_bits) % half
    count, sent_bits = coded.shape
    symbols = np.pad(coded, ((0, 0), (0, -sent_bits % symbol_bits))).reshape(count, -1, symbol_bits)
    axes = symbols[..., np.argsort(places)].reshape(count, -1, half)
    words = axes @ (1 << np.arange(half)[::-1])
    amplitudes = np.array(AMPLITUDES[half])
    power = (amplitudes**2).mean() * (1 if subcarrier_bits == 1 else 2)
    noise = random.normal(scale=np.sqrt(power / 2) * 10 ** (-snr_db / 20), size=words.shape)
    distances = ((amplitudes[words] + noise)[..., None] - amplitudes) ** 2
    is_one = np.arange(len(amplitudes)) >> np.arange(half)[::-1, None] & 1 == 1
    metrics = [distances[..., ~ones].min(-1) - distances[..., ones].min(-1) for ones in is_one]
    received = np.stack(metrics, axis=-1).reshape(symbols.shape)[..., places]
    return received.reshape(count, -1)[:, :sent_bits]


def decode(metrics: Reals) -> Bits:
    """Return the most likely data."""
    count = len(metrics)
    steps = metrics.reshape(count, -1, 2)
    scores = np.full((count, 64), -np.inf)
    scores[:, 0] = 0
    oldest = np.empty((steps.shape[1], count, 64), dtype=np.int8)
    for step, decisions in enumerate(oldest):
        reached = (scores[:, REGISTERS & 63] + steps[:, step] @ SIGNS.T).reshape(count, 64, 2)
        decisions[:] = reached[..., 1] > reached[..., 0]
        scores = reached.max(-1)
    data = np.empty(steps.shape[:2], dtype=np.int64)
    state = np.zeros(count, dtype=np.int64)
    for step in reversed(range(len(oldest))):
        data[:, step] = state >> 5
        state = state << 1 & 63 | oldest[step, np.arange(count), state]
    return data


if __name__ == "__main__":
    main()
