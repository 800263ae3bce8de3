"""Decoding of images, against samples with what Pillow makes of them.

`image_samples.tar.xz` holds small files of many variants, written by Pillow 13.0 (libjpeg-turbo 3.2, libwebp 1.6,
OpenJPEG 2.5.4) or, where it cannot write a variant, by hand; `expected.txt` has the size and a hash of each as Pillow
decodes it to RGB.
"""

import functools
import hashlib
import struct
import sys
import tarfile
import time
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch
from harness import check, finish, source, to_torch
from onnx import TensorProto, helper

from onward.backends.torch.runtime.image import decode_image
from onward.errors import UnsupportedError

pytest.importorskip("PIL")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:PIL")


def decode_rgb(data: bytes) -> np.ndarray:
    return decode_image(torch.tensor(np.frombuffer(data, np.uint8))).numpy()


@functools.cache
def samples() -> dict[str, bytes]:
    with tarfile.open(Path(__file__).with_name("image_samples.tar.xz")) as archive:
        files = {member.name: archive.extractfile(member) for member in archive}
        return {name: file.read() for name, file in files.items() if file}


def expected() -> dict[str, tuple[str, str]]:
    lines = samples()["expected.txt"].decode().splitlines()
    return {name: (size, digest) for name, size, digest in (line.split() for line in lines)}


def decoder(data: bytes, **attributes: str) -> tuple:
    encoded = np.frombuffer(data, np.uint8)
    node = helper.make_node("ImageDecoder", ["data"], ["image"], **attributes)
    graph = helper.make_graph(
        [node],
        "decoder",
        [helper.make_tensor_value_info("data", TensorProto.UINT8, encoded.shape)],
        [helper.make_tensor_value_info("image", TensorProto.UINT8, [None, None, None])],
    )
    return finish(graph, 20), [encoded]


@pytest.mark.parametrize("name", expected())
def test_pixels_are_those_of_pillow(name: str) -> None:
    size, digest = expected()[name]
    pixels = decode_rgb(samples()[name])
    assert pixels.dtype == np.uint8
    assert pixels.shape[2] == 3
    assert f"{pixels.shape[0]}x{pixels.shape[1]}" == size
    assert hashlib.sha256(pixels.tobytes()).hexdigest().startswith(digest)


UNREAD = ("jp2", "tif", "ppm")
"""What TensorFlow's own decoder, which its generated code calls, refuses when it sees it."""


@pytest.mark.parametrize("kind", ["jpg", "jp2", "webp", "png", "tif", "bmp", "ppm"])
@pytest.mark.parametrize("pixel_format", ["RGB", "BGR", "Grayscale"])
def test_pixel_formats(kind: str, pixel_format: str) -> None:
    data = next(data for name, data in samples().items() if name.endswith(f".{kind}"))
    rgb = decode_rgb(data)
    luma = rgb.astype(np.int64) @ [19595, 38470, 7471] + 32768 >> 16
    wanted = {"RGB": rgb, "BGR": rgb[:, :, ::-1], "Grayscale": luma.astype(np.uint8)[:, :, None]}[pixel_format]
    model, inputs = decoder(data, pixel_format=pixel_format)
    check(model, inputs, expected=[wanted], backends=["torch"] if kind in UNREAD else ())


def test_default_is_rgb_and_the_code_is_a_call() -> None:
    model, inputs = decoder(samples()["pnm_p6.ppm"])
    check(model, inputs, expected=[decode_rgb(samples()["pnm_p6.ppm"])], backends=["torch"])
    assert 'decode_image(data, "RGB")' in source(model) or "decode_image(data, 'RGB')" in source(model)


def test_unknown_pixel_format_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="YUV"):
        to_torch(decoder(b"", pixel_format="YUV")[0])


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"GIF89a" + bytes(20), b"RIFF1234WAVE"])
def test_other_data_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="not an image of a known format"):
        decode_rgb(data)


@pytest.mark.parametrize("name", [name for name in expected() if not name.startswith("pnm_p1")])
def test_truncated_files_are_refused(name: str) -> None:
    data = samples()[name]
    for part in (0.3, 0.6):
        with pytest.raises(ValueError, match="image"):
            decode_rgb(data[: int(len(data) * part)])
    try:
        pixels = decode_rgb(data[: int(len(data) * 0.9)])
    except ValueError:
        return
    np.testing.assert_array_equal(pixels, decode_rgb(data), err_msg="what is missing was made up")


def test_without_pillow_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ImportError, match="pip install pillow"):
        decode_rgb(samples()["png_2_8.png"])


def huge_png() -> bytes:
    header = b"IHDR" + struct.pack(">IIBBBBB", 1 << 30, 1 << 30, 8, 2, 0, 0, 0)
    data = b"IDAT" + zlib.compress(bytes(1000))
    chunks = [struct.pack(">I", len(c) - 4) + c + struct.pack(">I", zlib.crc32(c)) for c in (header, data, b"IEND")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def patched(name: str, place: int, value: bytes) -> bytes:
    data = samples()[name]
    return data[:place] + value + data[place + len(value) :]


HUGE = {
    "png": huge_png,
    "bmp": lambda: patched("bmp_24.bmp", 18, struct.pack("<II", 1 << 30, 1 << 30)),
    "pnm": lambda: b"P6 999999999 999999999 255\n" + bytes(100),
    "tiff": lambda: (
        b"II*\0\x08\0\0\0\2\0" + struct.pack("<HHIIHHII", 256, 4, 1, 1 << 30, 257, 4, 1, 1 << 30) + bytes(4)
    ),
    "jpeg": lambda: patched(
        "jpeg_444_16x16.jpg", samples()["jpeg_444_16x16.jpg"].index(b"\xff\xc0") + 5, b"\xff\xff\xff\xff"
    ),
    "webp": lambda: patched("webp_q75.webp", 26, b"\xff\x3f\xff\x3f"),
    "lossless webp": lambda: patched("webp_lossless_rgb.webp", 21, b"\xff\xff\xff\x0f"),
    "jpeg2000": lambda: patched("jpeg2000_codestream.jp2", 8, struct.pack(">II", 1 << 31, 1 << 31)),
    "jpeg2000 tiles": lambda: patched("jpeg2000_codestream.jp2", 8, struct.pack(">II", 8000, 8000)),
}


@pytest.mark.parametrize("kind", HUGE)
def test_a_size_that_the_data_cannot_fill_is_refused_at_once(kind: str) -> None:
    start = time.process_time()
    with pytest.raises(ValueError, match="image"):
        decode_rgb(HUGE[kind]())
    assert time.process_time() - start < 2
