"""The pixels of JPEG 2000, tile by tile, from the headers and packets."""

import numpy as np

from onward.backends.torch.runtime.image_jpeg2000 import J2kCoding, J2kHeader, codestream, read_codestream
from onward.backends.torch.runtime.image_jpeg2000_block import decode_code_block
from onward.backends.torch.runtime.image_jpeg2000_packet import (
    J2kBand,
    J2kPrecinct,
    band_box,
    joined_segments,
    packet_order,
    read_packet,
    tile_bands,
    tile_precincts,
)
from onward.backends.torch.runtime.image_jpeg2000_wavelet import merge_bands


def decode_jpeg2000(data: bytes) -> np.ndarray:
    """Gray or RGB, with or without loss, in a JP2 file or a bare codestream."""
    stream = data if data.startswith(b"\xff\x4f") else codestream(data)
    header, parts = read_codestream(stream)
    left, top, right, bottom = header.image
    channels = 3 if len(header.depths) >= 3 else 1
    out = np.zeros((bottom - top, right - left, channels), np.uint8)
    for tile, body in parts.values():
        x0, y0, x1, y1 = tile.tile
        planes = decode_tile(tile, body)
        for channel in range(channels):
            depth = tile.depths[channel]
            plane = planes[channel] + (1 << (depth - 1))
            plane = plane.clip(0, (1 << depth) - 1)
            plane = plane >> (depth - 8) if depth > 8 else plane << (8 - depth)
            out[y0 - top : y1 - top, x0 - left : x1 - left, channel] = plane
    return out


def decode_tile(header: J2kHeader, data: bytes) -> list[np.ndarray]:
    """The samples of each component, around zero if they are not signed."""
    bands = [tile_bands(header, component) for component in range(len(header.coding))]
    precincts: list[J2kPrecinct] = []
    for component, resolutions in enumerate(bands):
        precincts += tile_precincts(header, component, resolutions, len(data) - len(precincts))
    if len(precincts) * header.layers > len(data):
        raise ValueError("the data ends too early")
    position = 0
    for layer, precinct in packet_order(header, precincts):
        position = read_packet(header, layer, precinct, data, position)
    planes = [component_plane(header, i, resolutions) for i, resolutions in enumerate(bands)]
    if header.mixed and len(planes) >= 3:
        planes[:3] = unmixed(*planes[:3])
    return [np.rint(plane).astype(np.int64) for plane in planes]


def component_plane(header: J2kHeader, component: int, resolutions: list[list[J2kBand]]) -> np.ndarray:
    """A component of a tile, from its bands."""
    coding = header.coding[component]
    image = band_coefficients(coding, resolutions[0][0])
    for level, group in zip(range(coding.levels - 1, -1, -1), resolutions[1:], strict=True):
        left, top, _, _ = band_box(header.tile, level, 0)
        coefficients = [image, *(band_coefficients(coding, band) for band in group)]
        image = merge_bands(coefficients, top, left, coding.reversible)
    return image


def band_coefficients(coding: J2kCoding, band: J2kBand) -> np.ndarray:
    left, top, right, bottom = band.box
    shape = (max(bottom - top, 0), max(right - left, 0))
    out = np.zeros(shape, np.int32 if coding.reversible else np.float32)
    for block in band.blocks:
        if block.passes:
            x0, y0, x1, y1 = block.box
            if block.planes > 30:
                raise ValueError("too many bit planes")
            segments = joined_segments(block.segments, coding.style)
            values = decode_code_block(x1 - x0, y1 - y0, band.kind, block.planes, segments, coding.style)
            if coding.reversible:
                part: np.ndarray = (values + (values < 0)) >> 1
            else:
                part = values.astype(np.float32) * np.float32(np.float32(0.5) * np.float32(band.step))
            out[y0 - top : y1 - top, x0 - left : x1 - left] = part
    return out


def unmixed(y: np.ndarray, blue: np.ndarray, red: np.ndarray) -> list[np.ndarray]:
    """Red, green and blue from luma and differences: in integers without loss, or ICT's real numbers."""
    if np.issubdtype(y.dtype, np.integer):
        green = y - ((blue + red) >> 2)
        return [red + green, green, blue + green]
    r = y + red * np.float32(1.402)
    g = y - blue * np.float32(0.34413) - red * np.float32(0.71414)
    b = y + blue * np.float32(1.772)
    return [r, g, b]
