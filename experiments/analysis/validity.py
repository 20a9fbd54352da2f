"""Whether a live run can be believed: did the machine keep up with it?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from experiments.model.results import LinkResult, ProgramTimes
from experiments.model.settings import Live

_BUSY_COLUMNS = (0, 1, 2, 5, 6, 7)
"""user, nice, system, irq, softirq, steal of /proc/stat (proc(5)); the others are idle and iowait, and guest
time, which user has already."""

_PLACES_SHOWN = 5


class CpuMeter:
    """Share of the machine's cores that was busy since it was made or last asked."""

    def __init__(self, stat: Path = Path("/proc/stat")) -> None:
        self._stat = stat
        self._last = self._read()

    def busy(self) -> float | None:
        """Return the share (0 to 1) since the last call; None if no time has passed."""
        before, self._last = self._last, self._read()
        return _share(before, self._last)

    def busy_so_far(self) -> float | None:
        """Return the same as `busy`, which goes on from where it was."""
        return _share(self._last, self._read())

    def _read(self) -> list[int]:
        line = self._stat.read_text().splitlines()[0]
        return [int(word) for word in line.split()[1:]]


def _share(before: Sequence[int], after: Sequence[int]) -> float | None:
    passed = [now - then for then, now in zip(before, after, strict=True)]
    total = sum(passed[:8])
    return sum(passed[column] for column in _BUSY_COLUMNS) / total if total > 0 else None


def why_invalid(
    settings: Live,
    cpu_busy: float | None,
    programs: Sequence[ProgramTimes],
    links: Sequence[LinkResult],
    lost: Mapping[str, int],
) -> list[str]:
    """Return a sentence for each sign that the machine was too slow for the run.

    `lost` has the packets that the kernel dropped because the emulator or a switch read them too late, by
    place, as `at port 2 of S3`.
    """
    reasons = []
    if cpu_busy is not None and cpu_busy > settings.cpu_busy_max:
        reasons.append(f"{cpu_busy:.0%} of the processor was busy, above {settings.cpu_busy_max:.0%}")
    reasons += _slow_programs(settings, programs)
    for quantity, bound, field in (
        ("99 % of", settings.lateness_p99_max_us, "lateness_p99_us"),
        ("all", settings.lateness_max_us, "lateness_max_us"),
    ):
        late = [(value, link.link) for link in links if (value := getattr(link, field)) is not None]
        if late and max(late)[0] > bound:
            value, name = max(late)
            reasons.append(
                f"link {name} released {quantity} its packets up to {value / 1e3:.1f} ms late, "
                f"above {bound / 1e3:g} ms"
            )
    if lost:
        reasons.append(_lost_text(lost))
    return reasons


def _slow_programs(settings: Live, programs: Sequence[ProgramTimes]) -> list[str]:
    """Return why programs that packets pass delayed them: they waited long, or never had nothing to do."""
    reasons = []
    waited = [each for each in programs if each.wait_mean_us > settings.program_wait_max_us]
    if waited:
        worst = max(waited, key=lambda each: each.wait_mean_us)
        reasons.append(
            f"{worst.program}{_and_others(waited)} waited {worst.wait_mean_us / 1e3:.1f} ms on average for a "
            f"processor, above {settings.program_wait_max_us / 1e3:g} ms"
        )
    behind = [each for each in programs if each.ran + each.waited > settings.program_busy_max]
    if behind:
        worst = max(behind, key=lambda each: each.ran + each.waited)
        wanted = worst.ran + worst.waited
        reasons.append(
            f"{worst.program}{_and_others(behind)} ran or waited for a processor {wanted:.1%} of the time, "
            f"above {settings.program_busy_max:.1%}: packets wait in front of it"
        )
    return reasons


def _and_others(programs: Sequence[ProgramTimes]) -> str:
    return f" (and {len(programs) - 1} more)" if len(programs) > 1 else ""


def _lost_text(lost: Mapping[str, int]) -> str:
    places = sorted(lost.items(), key=lambda item: (-item[1], item[0]))
    shown = [f"{count} {place}" for place, count in places[:_PLACES_SHOWN]]
    if len(places) > _PLACES_SHOWN:
        shown.append(f"the others at {len(places) - _PLACES_SHOWN} more places")
    total = sum(lost.values())
    packets = "packet was" if total == 1 else "packets were"
    return f"{total} {packets} lost because the machine read too late: {', '.join(shown)}"
