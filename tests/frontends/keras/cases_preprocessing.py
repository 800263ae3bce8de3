"""Layers that prepare data; of those that are random, what they do where nothing is trained."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from cases import IMAGE, PHOTO, RNG, ROW, Case, Inside, L, case, floats

COLOURS = np.array([["red", "green"], ["blue", "red"], ["none", ""]])
NUMBERS = np.array([[5, 4, 3], [3, 3, -7]])
INDICES = np.array([[0, 1, 2], [3, 3, 1]])
TEXTS = np.array([["The red, red fox!"], ["a Blue bird"], [""]])
VOCABULARY = ["red", "green", "blue"]
SOUND = floats(2, 600)
DIGITS = np.array([[0], [3], [8], [1]], np.int32)


def adapted(layer: Any, data: Any) -> Any:
    layer.adapt(data)
    return layer


def saved_model(endpoint: str) -> Any:
    """A layer that runs a SavedModel."""
    folder = Path(tempfile.mkdtemp()) / "saved"
    weight = tf.Variable(floats(6, 3))
    module = tf.Module()
    module.weight = weight
    module.serve = tf.function(
        lambda x: tf.nn.relu(tf.matmul(x, weight)), input_signature=[tf.TensorSpec([None, 6], tf.float32)]
    )
    tf.saved_model.save(module, folder, signatures={"serving_default": module.serve})
    return L.TFSMLayer(str(folder), call_endpoint=endpoint)


def boxes(images: Any) -> Any:
    """Boxes and labels beside images, filled up to ten."""
    corners = keras.ops.reshape(images[:, :2, :2, :], (-1, 3, 4))
    labelled = {"boxes": corners, "labels": keras.ops.mean(corners, axis=-1)}
    return L.MaxNumBoundingBoxes(10, bounding_box_format="xyxy")({"images": images, "bounding_boxes": labelled})


PREPROCESSING: dict[str, Case] = {
    "Normalization": case(lambda: L.Normalization(mean=0.5, variance=2.0), ROW),
    "Normalization inverse": case(lambda: L.Normalization(mean=0.5, variance=2.0, invert=True), ROW),
    "Normalization adapted": case(lambda: adapted(L.Normalization(), ROW), ROW),
    "Normalization axes": case(lambda: adapted(L.Normalization(axis=(1, 3)), IMAGE), IMAGE),
    "Rescaling": case(lambda: L.Rescaling(0.5, -1), IMAGE),
    "Rescaling of channels": case(lambda: L.Rescaling([0.5, 1, 2], [0, -1, 1]), PHOTO),
    "Discretization": case(lambda: L.Discretization(bin_boundaries=[-1.0, 0.0, 1.0]), ROW),
    "Discretization adapted": case(lambda: adapted(L.Discretization(num_bins=3), ROW), ROW),
    "CategoryEncoding": case(lambda: L.CategoryEncoding(9, "multi_hot"), INDICES.astype(np.int32)),
    "CategoryEncoding one hot": case(lambda: L.CategoryEncoding(9, "one_hot"), DIGITS),
    "CategoryEncoding count": case(lambda: L.CategoryEncoding(9, "count"), INDICES.astype(np.int32)),
    "CategoryEncoding weighed": case(
        lambda: lambda x, w: L.CategoryEncoding(9, "count")(x, count_weights=w),
        INDICES.astype(np.int32),
        floats(2, 3),
    ),
    "Hashing of texts": case(lambda: L.Hashing(7), COLOURS),
    "Hashing of numbers": case(lambda: L.Hashing(7), NUMBERS),
    "Hashing salted": case(lambda: L.Hashing(7, salt=[11, 5]), COLOURS),
    "Hashing with a mask": case(lambda: L.Hashing(7, mask_value=""), COLOURS),
    "HashedCrossing": case(
        lambda: lambda a, b: L.HashedCrossing(7)((a, b)), COLOURS[:, :1], NUMBERS.reshape(-1, 1)[:3]
    ),
    "StringLookup": case(lambda: L.StringLookup(vocabulary=VOCABULARY), COLOURS),
    "StringLookup masked": case(lambda: L.StringLookup(vocabulary=VOCABULARY, mask_token=""), COLOURS),
    "StringLookup inverse": case(lambda: L.StringLookup(vocabulary=VOCABULARY, invert=True), INDICES),
    "StringLookup multi hot": case(lambda: L.StringLookup(vocabulary=VOCABULARY, output_mode="multi_hot"), COLOURS),
    "StringLookup count": case(lambda: L.StringLookup(vocabulary=VOCABULARY, output_mode="count"), COLOURS),
    "StringLookup tf-idf": case(
        lambda: L.StringLookup(vocabulary=VOCABULARY, output_mode="tf_idf", idf_weights=[0.2, 0.5, 0.7]), COLOURS
    ),
    "StringLookup one hot": case(lambda: L.StringLookup(vocabulary=VOCABULARY, output_mode="one_hot"), COLOURS[:, :1]),
    "StringLookup more unknown": case(lambda: L.StringLookup(vocabulary=VOCABULARY, num_oov_indices=3), COLOURS),
    "StringLookup none unknown": case(lambda: L.StringLookup(vocabulary=VOCABULARY, num_oov_indices=0), COLOURS[:2]),
    "IntegerLookup": case(lambda: L.IntegerLookup(vocabulary=[3, 5]), NUMBERS),
    "IntegerLookup adapted, masked": case(lambda: adapted(L.IntegerLookup(mask_token=4), NUMBERS), NUMBERS),
    "IntegerLookup inverse": case(lambda: L.IntegerLookup(vocabulary=[3, 5, 9], invert=True), INDICES),
    "IntegerLookup multi hot": case(lambda: L.IntegerLookup(vocabulary=[3, 5], output_mode="multi_hot"), NUMBERS),
    "IntegerLookup more unknown": case(lambda: L.IntegerLookup(vocabulary=[3, 5], num_oov_indices=2), NUMBERS),
    "TextVectorization": case(lambda: L.TextVectorization(vocabulary=VOCABULARY), TEXTS),
    "TextVectorization of fixed length": case(
        lambda: L.TextVectorization(vocabulary=VOCABULARY, output_sequence_length=5), TEXTS
    ),
    "TextVectorization multi hot": case(
        lambda: L.TextVectorization(vocabulary=VOCABULARY, output_mode="multi_hot"), TEXTS
    ),
    "TextVectorization count": case(lambda: L.TextVectorization(vocabulary=VOCABULARY, output_mode="count"), TEXTS),
    "TextVectorization lower": case(lambda: L.TextVectorization(vocabulary=VOCABULARY, standardize="lower"), TEXTS),
    "TextVectorization as it is": case(lambda: L.TextVectorization(vocabulary=VOCABULARY, standardize=None), TEXTS),
    "TextVectorization by letters": case(
        lambda: L.TextVectorization(vocabulary=["a", "b", "r"], split="character"), TEXTS
    ),
    "TextVectorization in pairs": case(
        lambda: L.TextVectorization(vocabulary=["red", "red red", "red fox"], ngrams=2), TEXTS
    ),
    "Resizing": case(lambda: L.Resizing(6, 5), IMAGE),
    "Resizing nearest": case(lambda: L.Resizing(16, 18, "nearest"), IMAGE),
    "Resizing bicubic": case(lambda: L.Resizing(16, 18, "bicubic"), IMAGE),
    "Resizing area": case(lambda: L.Resizing(5, 6, "area"), IMAGE),
    "Resizing smoothly": case(lambda: L.Resizing(5, 6, antialias=True), IMAGE),
    "Resizing open": case(lambda: L.Resizing(6, 5), IMAGE, open=True),
    "Resizing cropped": case(lambda: L.Resizing(6, 5, crop_to_aspect_ratio=True), PHOTO),
    "Resizing padded": case(lambda: L.Resizing(6, 5, pad_to_aspect_ratio=True), PHOTO),
    "Resizing channels first": case(lambda: L.Resizing(6, 5, data_format="channels_first"), IMAGE),
    "CenterCrop": case(lambda: L.CenterCrop(4, 5), IMAGE),
    "CenterCrop of less": case(lambda: L.CenterCrop(16, 12), IMAGE),
    "RandomCrop": case(lambda: L.RandomCrop(4, 5), IMAGE),
    "MelSpectrogram": case(lambda: L.MelSpectrogram(64, 32, num_mel_bins=8), SOUND, rtol=2e-4),
    "MelSpectrogram plain": case(
        lambda: L.MelSpectrogram(64, 32, 48, num_mel_bins=8, power_to_db=False, mag_exp=1.0), SOUND, rtol=2e-4
    ),
    "STFTSpectrogram": case(lambda: L.STFTSpectrogram(frame_length=64), SOUND[..., None], rtol=2e-4),
    "TFSMLayer": case(lambda: saved_model("serving_default"), ROW),
    "TFSMLayer method": case(lambda: saved_model("serve"), ROW),
    "Pipeline": case(lambda: L.Pipeline([L.Rescaling(1 / 255), L.RandomFlip()]), PHOTO),
    "MaxNumBoundingBoxes": case(lambda: boxes, RNG.uniform(0, 9, (2, 4, 4, 3)).astype(np.float32)),
    "AutoContrast": case(lambda: L.AutoContrast(), PHOTO),
    "Equalization": case(lambda: Inside(L.Equalization()), PHOTO),
    "Solarization": case(lambda: L.Solarization(0.2, 0.4), PHOTO),
    "ContrastLimitedAdaptiveHistogramEqualization": case(
        lambda: L.ContrastLimitedAdaptiveHistogramEqualization(tile_grid_size=(2, 2)), PHOTO
    ),
    "AugMix": case(lambda: L.AugMix(), PHOTO),
    "CutMix": case(lambda: L.CutMix(), PHOTO),
    "MixUp": case(lambda: L.MixUp(), PHOTO),
    "RandAugment": case(lambda: L.RandAugment(), PHOTO),
} | {
    f"STFTSpectrogram {mode}": case(
        lambda mode=mode: L.STFTSpectrogram(mode, 64, 32, fft_length=128, padding="same"), SOUND[..., None], rtol=2e-4
    )
    for mode in ("magnitude", "psd", "real", "imag", "angle", "stft")
}

RANDOM: dict[str, Any] = {
    "RandomBrightness": {"factor": 0.2},
    "RandomColorDegeneration": {"factor": 0.2},
    "RandomColorJitter": {"brightness_factor": 0.2},
    "RandomContrast": {"factor": 0.2},
    "RandomElasticTransform": {},
    "RandomErasing": {},
    "RandomFlip": {},
    "RandomGaussianBlur": {},
    "RandomGrayscale": {},
    "RandomHue": {"factor": 0.2},
    "RandomInvert": {},
    "RandomPerspective": {},
    "RandomPosterization": {"factor": 4},
    "RandomRotation": {"factor": 0.2},
    "RandomSaturation": {"factor": 0.2},
    "RandomSharpness": {"factor": 0.2},
    "RandomShear": {"x_factor": 0.2},
    "RandomTranslation": {"height_factor": 0.2, "width_factor": 0.2},
    "RandomZoom": {"height_factor": 0.2},
}
PREPROCESSING |= {
    name: case(lambda name=name, options=options: getattr(L, name)(**options), PHOTO)
    for name, options in RANDOM.items()
}
