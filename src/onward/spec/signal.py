"""What Fourier transforms and windows mean."""

from __future__ import annotations

from dataclasses import dataclass

from onward.spec.meaning import Spec, means


@means("DFT")
@dataclass(frozen=True)
class DFT(Spec):
    inverse: bool = False
    onesided: bool = False


@means("STFT")
@dataclass(frozen=True)
class STFT(Spec):
    onesided: bool = True


@means("MelWeightMatrix")
@dataclass(frozen=True)
class Made(Spec):
    output_datatype: int = 1


@means("HannWindow", "HammingWindow", "BlackmanWindow")
@dataclass(frozen=True)
class CosineWindow(Made):
    periodic: bool = True
