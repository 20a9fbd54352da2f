"""What a link over IEEE 802.11 has in place of a rate and a delay (docs/simulator-wifi.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

STANDARD_RATES_BPS: Mapping[str, tuple[float, ...]] = {
    "802.11b": (1e6, 2e6, 5.5e6, 11e6),
    "802.11g": (6e6, 9e6, 12e6, 18e6, 24e6, 36e6, 48e6, 54e6),
}

Decibels = Annotated[float, Field(ge=-200, le=200)]
Shape = Annotated[float, Field(ge=0.5, le=1e9)]


class WirelessLink(BaseModel):
    """The keys of a wireless link; all are None for a wired one.

    `wifi` is the standard, `phy_rate_bps` one of its rates. What else is None has the simulator's default.
    Links of one `channel` share one medium; without a name a link has a medium of its own.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    wifi: Literal["802.11b", "802.11g"] | None = None
    distance_m: float | None = Field(default=None, gt=0, le=1e5, allow_inf_nan=False)
    phy_rate_bps: float | None = None
    rate_control: Literal["constant", "aarf"] | None = None
    error_model: Literal["table", "nist", "yans"] | None = None
    receiver: Literal["standard", "ns3"] | None = None
    path_loss_exponent: float | None = Field(default=None, ge=0, le=10)
    reference_loss_db: Decibels | None = None
    tx_power_dbm: Annotated[float, Field(ge=-100, le=100)] | None = None
    noise_figure_db: Annotated[float, Field(ge=0, le=100)] | None = None
    fading_near_shape: Shape | None = None
    fading_far_shape: Shape | None = None
    fading_far_from_m: float | None = Field(default=None, ge=0, le=1e6)
    short_slot: bool | None = None
    rts_threshold_bytes: int | None = Field(default=None, ge=0, le=10_000)
    attempts: int | None = Field(default=None, ge=1, le=255)
    long_attempts: int | None = Field(default=None, ge=1, le=255)
    lifetime_s: float | None = Field(default=None, ge=0, le=3600)
    detection_dbm: Annotated[float, Field(ge=-200, le=100)] | None = None
    detection_snr_db: Annotated[float, Field(ge=-100, le=100)] | None = None
    energy_detection_dbm: Annotated[float, Field(ge=-200, le=100)] | None = None
    queue_discipline: Literal["drop_tail", "fq_codel"] | None = None
    channel: Annotated[str, Field(min_length=1, max_length=32)] | None = None

    @field_validator("phy_rate_bps")
    @classmethod
    def _is_a_rate_of_the_standard(cls, rate_bps: float | None, info: ValidationInfo) -> float | None:
        standard = info.data.get("wifi")
        known = STANDARD_RATES_BPS.get(standard or "")
        if known and rate_bps is not None and rate_bps not in known:
            rates = ", ".join(f"{rate / 1e6:g}" for rate in known)
            raise ValueError(f"{standard} has no rate of {rate_bps / 1e6:g} Mbit/s; it has {rates}")
        return rate_bps

    @model_validator(mode="before")
    @classmethod
    def _rate_follows(cls, data: Any) -> Any:
        """Give a wireless link the rate of its physical layer, and no delay."""
        if not isinstance(data, Mapping) or data.get("wifi") is None:
            return data
        missing = [key for key in ("distance_m", "phy_rate_bps") if data.get(key) is None]
        if missing:
            raise ValueError(f"a link with wifi needs {' and '.join(missing)}")
        follows = {"rate_bps": data["phy_rate_bps"], "delay_us": 0.0}
        unfit = [key for key, value in follows.items() if data.get(key, value) != value]
        unfit += [key for key in ("loss", "jitter_us", "queue_bytes", "one_way") if data.get(key)]
        unfit += [key for key in ("reverse_rate_bps", "reverse_delay_us") if data.get(key) is not None]
        if unfit:
            raise ValueError(f"a link with wifi has no {' and no '.join(unfit)}; its rate is phy_rate_bps")
        return {**data, **follows}

    @model_validator(mode="after")
    def _is_wireless_or_not(self) -> WirelessLink:
        given = self.wireless_settings()
        if self.wifi is None and given:
            raise ValueError(f'{", ".join(given)}: only a link with wifi has this (wifi = "802.11g")')
        return self

    def radio(self) -> dict[str, Any]:
        """Return a wireless link as the simulator and the link emulator are told of it."""
        return {"standard": self.wifi, **self.wireless_settings()}

    def wireless_settings(self) -> dict[str, Any]:
        """Return what is set of a wireless link, but for `wifi` itself."""
        return {
            name: getattr(self, name)
            for name in WirelessLink.model_fields
            if name != "wifi" and getattr(self, name) is not None
        }
