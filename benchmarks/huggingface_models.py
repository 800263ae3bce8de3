"""Tiny random models of 49 architectures of Hugging Face, made from their configurations without a download."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

Sizes = dict[str, Any]
VOCABULARY = 99
TEXT: Sizes = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": None,
}
GROUPED: Sizes = TEXT | {"num_key_value_heads": 2}
SMALL: Sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
VISION: Sizes = SMALL | {"image_size": 32, "patch_size": 8}
BOTH_SIDES: Sizes = {
    "vocab_size": VOCABULARY,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
}
SOUND: Sizes = (
    SMALL
    | {
        "vocab_size": VOCABULARY,
        "conv_dim": (16, 16),
        "conv_kernel": (10, 3),
        "conv_stride": (5, 2),
        "num_conv_pos_embeddings": 16,
    }
    | {"num_conv_pos_embedding_groups": 2, "num_feat_extract_layers": 2}
)


def tokens(batch: int, length: int) -> torch.Tensor:
    return torch.randint(2, VOCABULARY, (batch, length))


def masked(batch: int, length: int) -> torch.Tensor:
    """Ones, but for the last places of the first row."""
    mask = torch.ones(batch, length, dtype=torch.int64)
    mask[0, length - length // 3 :] = 0
    return mask


def text(batch: int, length: int) -> dict[str, torch.Tensor]:
    return {"input_ids": tokens(batch, length), "attention_mask": masked(batch, length)}


def unpadded(batch: int, length: int) -> dict[str, torch.Tensor]:
    return {"input_ids": tokens(batch, length)}


def two_texts(batch: int, length: int) -> dict[str, torch.Tensor]:
    return text(batch, length) | {"decoder_input_ids": tokens(batch, length + 2)}


def image(batch: int, length: int, side: int = 32) -> dict[str, torch.Tensor]:
    return {"pixel_values": torch.randn(batch, 3, side, side)}


def image_and_text(batch: int, length: int) -> dict[str, torch.Tensor]:
    return text(batch, length) | image(batch, length)


def image_and_points(batch: int, length: int) -> dict[str, torch.Tensor]:
    return image(batch, length) | {
        "input_points": torch.rand(batch, 1, length, 2) * 32,
        "input_labels": torch.ones(batch, 1, length, dtype=torch.int64),
    }


def sound(batch: int, length: int) -> dict[str, torch.Tensor]:
    return {"input_values": torch.randn(batch, 100 * length)}


def spectrum(batch: int, length: int) -> dict[str, torch.Tensor]:
    return {"input_features": torch.randn(batch, 16, 32), "decoder_input_ids": tokens(batch, length)}


@dataclass(frozen=True)
class Architecture:
    name: str
    model: str
    """The class of the model; that of its configuration is called alike."""
    sizes: Sizes
    inputs: Callable[[int, int], dict[str, torch.Tensor]] = text
    lengths: dict[str, int] = field(default_factory=dict)
    """Which axis of an input is as long as the text or sound."""

    @property
    def decodes(self) -> bool:
        return self.model.endswith(("ForCausalLM", "ForConditionalGeneration", "LMHeadModel", "MTModel"))

    @property
    def encodes(self) -> bool:
        """Whether it has an encoder beside its decoder."""
        return "decoder_input_ids" in self.lengths

    def make(self, seed: int = 0) -> torch.nn.Module:
        import transformers

        torch.manual_seed(seed)
        model = getattr(transformers, self.model)
        made: torch.nn.Module = model(model.config_class(**self.sizes)).eval()
        with torch.no_grad():
            for parameter in made.parameters():  # fresh ones are so small that not all of them show in the results
                parameter += 0.1 * torch.randn_like(parameter)
        return made


TEXTUAL = {"input_ids": 1, "attention_mask": 1}
ARCHITECTURES = [
    Architecture(name, model, sizes, text, TEXTUAL)
    for name, model, sizes in (
        ("BERT", "BertForMaskedLM", TEXT),
        (
            "DistilBERT",
            "DistilBertForMaskedLM",
            {"vocab_size": 99, "dim": 32, "hidden_dim": 48, "n_layers": 2, "n_heads": 4},
        ),
        ("RoBERTa", "RobertaForMaskedLM", TEXT),
        ("XLM-R", "XLMRobertaForMaskedLM", TEXT),
        ("ALBERT", "AlbertForMaskedLM", TEXT | {"embedding_size": 16}),
        ("ELECTRA", "ElectraForPreTraining", TEXT | {"embedding_size": 16}),
        (
            "DeBERTa-v2",
            "DebertaV2ForMaskedLM",
            TEXT
            | {
                "relative_attention": True,
                "pos_att_type": ["p2c", "c2p"],
                "position_buckets": 8,
                "share_att_key": True,
            },
        ),
        ("MPNet", "MPNetForMaskedLM", TEXT),
        ("ModernBERT", "ModernBertForMaskedLM", TEXT | {"local_attention": 8}),
        ("GPT-2", "GPT2LMHeadModel", {"vocab_size": 99, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}),
        (
            "GPT-Neo",
            "GPTNeoForCausalLM",
            TEXT | {"num_layers": 2, "num_heads": 4, "attention_types": [[["global", "local"], 1]], "window_size": 8},
        ),
        ("GPT-NeoX", "GPTNeoXForCausalLM", TEXT),
        (
            "GPT-J",
            "GPTJForCausalLM",
            {"vocab_size": 99, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "rotary_dim": 4},
        ),
        ("OPT", "OPTForCausalLM", TEXT | {"ffn_dim": 48, "word_embed_proj_dim": 32}),
        ("BLOOM", "BloomForCausalLM", {"vocab_size": 99, "hidden_size": 32, "n_layer": 2, "n_head": 4}),
        ("Falcon", "FalconForCausalLM", TEXT),
        ("Llama", "LlamaForCausalLM", GROUPED),
        ("Mistral", "MistralForCausalLM", GROUPED | {"sliding_window": 8}),
        ("Mixtral", "MixtralForCausalLM", GROUPED | {"num_local_experts": 4, "num_experts_per_tok": 2}),
        ("Qwen2", "Qwen2ForCausalLM", GROUPED),
        ("Qwen3", "Qwen3ForCausalLM", GROUPED | {"head_dim": 8}),
        (
            "Qwen3-MoE",
            "Qwen3MoeForCausalLM",
            GROUPED | {"head_dim": 8, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 24},
        ),
        ("Gemma", "GemmaForCausalLM", GROUPED | {"head_dim": 8}),
        ("Gemma 2", "Gemma2ForCausalLM", GROUPED | {"head_dim": 8, "sliding_window": 8}),
        ("Gemma 3", "Gemma3ForCausalLM", GROUPED | {"head_dim": 8, "sliding_window": 8}),
        ("Phi", "PhiForCausalLM", TEXT),
        ("Phi-3", "Phi3ForCausalLM", GROUPED),
        ("StableLM", "StableLmForCausalLM", GROUPED),
        ("OLMo 2", "Olmo2ForCausalLM", GROUPED),
        (
            "GPT-OSS",
            "GptOssForCausalLM",
            GROUPED | {"head_dim": 8, "sliding_window": 8, "num_local_experts": 4, "num_experts_per_tok": 2},
        ),
    )
]
ARCHITECTURES += [  # for one text transformers does not read its mask
    Architecture(
        "Mamba",
        "MambaForCausalLM",
        {"vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 8},
        unpadded,
        {"input_ids": 1},
    )
]
ARCHITECTURES += [
    Architecture(name, model, sizes, two_texts, TEXTUAL | {"decoder_input_ids": 1})
    for name, model, sizes in (
        (
            "T5",
            "T5ForConditionalGeneration",
            {"vocab_size": 99, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4},
        ),
        ("BART", "BartForConditionalGeneration", BOTH_SIDES),
        ("Marian", "MarianMTModel", BOTH_SIDES),
        ("Pegasus", "PegasusForConditionalGeneration", BOTH_SIDES),
        ("M2M100", "M2M100ForConditionalGeneration", BOTH_SIDES),
    )
]
ARCHITECTURES += [
    Architecture(
        "Whisper",
        "WhisperForConditionalGeneration",
        BOTH_SIDES | {"num_mel_bins": 16, "max_source_positions": 16, "max_target_positions": 64},
        spectrum,
        {"decoder_input_ids": 1},
    ),
    Architecture("Wav2Vec2", "Wav2Vec2ForCTC", SOUND, sound, {"input_values": 1}),
    Architecture("HuBERT", "HubertForCTC", SOUND, sound, {"input_values": 1}),
    Architecture("ViT", "ViTForImageClassification", VISION, image),
    Architecture("DeiT", "DeiTForImageClassification", VISION, image),
    Architecture(
        "Swin",
        "SwinForImageClassification",
        {"image_size": 32, "patch_size": 2, "embed_dim": 16, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4},
        image,
    ),
    Architecture(
        "ConvNeXt",
        "ConvNextForImageClassification",
        {"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 2, 1]},
        image,
    ),
    Architecture(
        "ResNet",
        "ResNetForImageClassification",
        {"embedding_size": 8, "hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 2, 1]},
        image,
    ),
    Architecture(
        "SegFormer",
        "SegformerForSemanticSegmentation",
        {
            "hidden_sizes": [8, 16, 24, 32],
            "depths": [1, 1, 1, 1],
            "num_attention_heads": [1, 2, 2, 4],
            "decoder_hidden_size": 16,
        },
        image,
    ),
    Architecture("DINOv2", "Dinov2ForImageClassification", VISION, image),
    Architecture(
        "CLIP",
        "CLIPModel",
        {"text_config": TEXT | {"eos_token_id": 98}, "vision_config": VISION, "projection_dim": 16},
        image_and_text,
        TEXTUAL,
    ),
    Architecture("SigLIP", "SiglipModel", {"text_config": TEXT, "vision_config": VISION}, image_and_text, TEXTUAL),
    Architecture(
        "SAM",
        "SamModel",
        {
            "vision_config": {
                "hidden_size": 32,
                "num_hidden_layers": 2,
                "num_attention_heads": 4,
                "image_size": 32,
                "patch_size": 4,
                "mlp_dim": 48,
                "output_channels": 16,
                "window_size": 4,
                "global_attn_indexes": [1],
                "num_pos_feats": 8,
            },
            "prompt_encoder_config": {"hidden_size": 16, "image_size": 32, "patch_size": 4, "mask_input_channels": 4},
            "mask_decoder_config": {
                "hidden_size": 16,
                "num_attention_heads": 4,
                "mlp_dim": 48,
                "iou_head_hidden_dim": 16,
            },
        },
        image_and_points,
        {"input_points": 2, "input_labels": 2},
    ),
]
