"""Popular architectures of Hugging Face to ONNX and back, and language models as decoders with a cache.

python benchmarks/huggingface.py              all of huggingface_models.py; writes docs/measured/huggingface.md
python benchmarks/huggingface.py T5 Swin      only these; writes nothing
python benchmarks/huggingface.py --keep FILE  notes each result in FILE, and takes what went well there from it

Needs transformers 5 or later. Nothing is downloaded: models are tiny and random.
"""

import argparse
import json
import logging
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import machine
import numpy as np
import onnxruntime
import torch
from huggingface_models import ARCHITECTURES, Architecture, tokens
from rich.console import Console
from torch.utils import _pytree as pytree

import onward

PAGE = Path(__file__).parent.parent / "docs/measured/huggingface.md"
EXAMPLE, OTHERS = (2, 9), ((3, 12), (1, 5))
"""How many texts, images or sounds, and how long they are: what is exported, and what is compared."""
LIMIT = 1e-4
"""Of the greatest difference, as a share of the greatest number."""
PROMPT, STEPS = (2, 5), 16
Arrays = dict[str, np.ndarray[Any, Any]]
Run = Callable[[Arrays], Arrays]


def without_cache(model: torch.nn.Module) -> torch.nn.Module:
    for part in model.modules():
        if hasattr(part, "config"):
            part.config.use_cache = False
    return model


def on_onnxruntime(model: onward.Model) -> Run:
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "net.onnx")
        session = onnxruntime.InferenceSession(Path(folder) / "net.onnx")
    names = [value.name for value in session.get_outputs()]
    return lambda inputs: dict(zip(names, session.run(names, inputs), strict=True))


def on_torch(model: onward.Model, net: torch.nn.Module) -> Run:
    inputs = [value.name for value in model.ir.graph.inputs]
    outputs = [value.name for value in model.ir.graph.outputs]

    def run(given: Arrays) -> Arrays:
        with torch.no_grad():
            found = net(*(torch.from_numpy(np.ascontiguousarray(given[name])) for name in inputs))
        parts = [found] if isinstance(found, torch.Tensor) else found
        return {name: part.numpy() for name, part in zip(outputs, parts, strict=True)}

    return run


def off(model: torch.nn.Module, run: Run, inputs: dict[str, torch.Tensor]) -> float:
    """The greatest difference, as a share of the greatest number."""
    with torch.no_grad():
        wanted = [value for value in pytree.tree_leaves(model(**inputs)) if isinstance(value, torch.Tensor)]
    found = run({name: tensor.numpy() for name, tensor in inputs.items()}).values()
    return max(float(np.abs(a.numpy() - b).max() / np.abs(a.numpy()).max()) for a, b in zip(wanted, found, strict=True))


def opened(architecture: Architecture, inputs: dict[str, torch.Tensor]) -> dict[str, dict[int, str]]:
    shared = ("input_ids", "attention_mask", "input_points", "input_labels")
    return {
        name: {0: "batch"}
        | ({axis: "length" if name in shared else f"{name}_length"} if (axis := architecture.lengths.get(name)) else {})
        for name in inputs
    }


def there_and_back(architecture: Architecture) -> dict[str, Any]:
    """The module that comes back takes the state dict of another model of that architecture."""
    model, other = (without_cache(architecture.make(seed)) for seed in (0, 1))
    torch.manual_seed(2)
    example, *others = (architecture.inputs(*size) for size in (EXAMPLE, *OTHERS))
    made = onward.from_torch(model, kwargs=example, dynamic=opened(architecture, example), check=False)
    run = on_onnxruntime(made)
    errors = [off(model, run, inputs) for inputs in others]
    back = onward.to_torch(made, check=False)
    state = other.state_dict()
    kept = back.load_state_dict(state, strict=False)
    if missing := {name for name, _ in back.named_parameters()} & {*kept.missing_keys}:
        raise ValueError(f"{', '.join(sorted(missing))} is not in the state dict of the original")
    errors += [off(other, on_torch(made, back), inputs) for inputs in others]
    if not max(errors) < LIMIT:
        raise ValueError(f"the results are {max(errors):.0e} off")
    held = {state[name].data_ptr() for name in state if name not in kept.unexpected_keys}
    left = ["tied" if state[name].data_ptr() in held else "unused" for name in kept.unexpected_keys]
    numbers = sum(parameter.numel() for parameter in model.parameters())
    return {"numbers": numbers, "error": max(errors), "names": len(state), "left": left}


def decoded(model: onward.Model, run: Run, prompt: np.ndarray[Any, Any], encoded: Arrays) -> np.ndarray[Any, Any]:
    """The prompt and what follows, the likeliest token each time, with nothing but the file's inputs and outputs."""
    inputs = {value.name: value.shape for value in model.ir.graph.inputs}
    batch, length = prompt.shape
    past = {
        name: np.zeros([batch, *(size if isinstance(size, int) else 0 for size in list(shape)[1:])], np.float32)
        for name, shape in inputs.items()
        if name.startswith("past_key_values.")
    }
    calls = [prompt] if not isinstance(inputs["input_ids"][1], int) else np.split(prompt, length, axis=1)
    text, read = prompt, 0
    while text.shape[1] < length + STEPS:
        for part in calls:
            read += part.shape[1]
            mask = {"attention_mask": np.ones((batch, read), np.int64)} if "attention_mask" in inputs else {}
            found = run({"input_ids": part, **mask, **encoded, **past})
            past = {name: found[name.replace("past_key_values", "present")] for name in past}
        calls = [found["logits"][:, -1:].argmax(-1)]
        text = np.concatenate([text, calls[0]], axis=1)
    return text


def encoded_by(model: Any, architecture: Architecture, given: dict[str, torch.Tensor]) -> Arrays:
    """What the encoder, as a file of its own, makes for the decoder; of a text that file gets the mask, too."""
    read = {name: value for name, value in given.items() if name != "decoder_input_ids"}
    axes = {name: axis for name, axis in opened(architecture, given).items() if name in read}
    run = on_onnxruntime(onward.from_torch(model.get_encoder(), kwargs=read, dynamic=axes, check=False))
    hidden = next(iter(run({name: value.numpy() for name, value in read.items()}).values()))
    mask = {"encoder_attention_mask": read["attention_mask"].numpy()} if "attention_mask" in read else {}
    return {"encoder_hidden_states": hidden, **mask}


def as_decoder(architecture: Architecture) -> str:
    model = architecture.make()
    torch.manual_seed(3)
    prompt = tokens(*PROMPT)
    given, encoded = {"input_ids": prompt, "attention_mask": torch.ones_like(prompt)}, {}
    if architecture.encodes:
        prompt[:, 0] = model.generation_config.decoder_start_token_id = 1
        given = architecture.inputs(PROMPT[0], 7) | {"decoder_input_ids": prompt}
        encoded = encoded_by(model, architecture, given)
    model.generation_config.eos_token_id = model.generation_config.forced_eos_token_id = None
    with torch.no_grad():
        wanted = model.generate(**given, max_new_tokens=STEPS, do_sample=False).numpy()[:, -STEPS:]
    made = onward.from_torch(model, cache=True, check=False)
    back = onward.to_torch(made, check=False)
    runs = {"ONNX Runtime": on_onnxruntime(made), "PyTorch": on_torch(made, back)}
    found = {who: decoded(made, run, prompt.numpy(), encoded)[:, -STEPS:] for who, run in runs.items()}
    wrong = [who for who, text in found.items() if not np.array_equal(text, wanted)]
    return f"other tokens on {' and '.join(wrong)}" if wrong else "same"


def measure(architecture: Architecture) -> dict[str, Any]:
    row: dict[str, Any] = {"model": architecture.model, "problem": ""}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            row |= there_and_back(architecture)
            row["decoder"] = as_decoder(architecture) if architecture.decodes else "–"
        except Exception as problem:
            row["problem"] = f"{type(problem).__name__}: {' '.join(str(problem).split())[:300]}"
    return row


def is_well(row: dict[str, Any]) -> bool:
    return not row["problem"] and row["decoder"] in ("same", "–")


def page(rows: dict[str, dict[str, Any]]) -> str:
    decoders = [row for row in rows.values() if row.get("decoder", "–") != "–"]
    back = sum(not row["problem"] for row in rows.values())
    same = sum(row["decoder"] == "same" for row in decoders)
    lines = [
        "# Architectures of Hugging Face, there and back",
        "",
        f"{len(rows)} popular architectures, each a tiny random model. To ONNX with a dynamic batch and length, and",
        f"back to PyTorch with the original's names: **{back} of {len(rows)}**. As decoders with their cache as",
        "inputs and outputs, `onward.from_torch(model, cache=True)`, on ONNX Runtime and in PyTorch:",
        f"**{same} of {len(decoders)}**.",
        "",
        "*Error* is the greatest difference as a share of the greatest number, on inputs of other sizes than the one",
        "that was exported, of ONNX Runtime and of the module that came back. That module has loaded the `state_dict`",
        "of another random model by then, and is compared with that one. *Names* are those of the state dict; what is",
        "left out is another name of a weight that is there (tied), or a weight that the model does not read (unused).",
        f"*Decoder*: a prompt of {PROMPT[1]} tokens and {STEPS} steps, beside the greedy `generate` of the original.",
        "Where there is an encoder, that is a second file. Mamba decodes one token a call. Made by",
        "`benchmarks/huggingface.py`.",
        "",
        machine.describe("onward", "torch", "transformers", "onnxruntime"),
        "",
        "| architecture | class | numbers | error | names | decoder |",
        "|---|---|---|---|---|---|",
    ]
    for name, row in rows.items():
        if row["problem"]:
            lines.append(f"| {name} | {row['model']} | | {row['problem'][:110].replace('|', '/')} | | |")
            continue
        left = ", ".join(f"{row['left'].count(why)} {why}" for why in ("tied", "unused") if why in row["left"])
        names = f"{row['names']}" + (f" but {left}" if left else "")
        cells = [name, row["model"], f"{row['numbers']:,}", f"{row['error']:.0e}", names, row["decoder"]]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", help="names of architectures; all by default")
    parser.add_argument("--keep", type=Path, help="a file of results to go on with")
    args = parser.parse_args()
    logging.disable(logging.CRITICAL)
    known = json.loads(args.keep.read_text()) if args.keep and args.keep.exists() else {}
    chosen = [a for a in ARCHITECTURES if not args.names or a.name in args.names]
    rows: dict[str, dict[str, Any]] = {}
    console = Console()
    for architecture in chosen:
        found = known.get(architecture.name)
        rows[architecture.name] = row = found if found and is_well(found) else measure(architecture)
        console.print(architecture.name, {key: row.get(key) for key in ("problem", "error", "left", "decoder")})
        if args.keep:
            known[architecture.name] = row
            args.keep.write_text(json.dumps(known, indent=1))
    if not args.names:
        PAGE.write_text(page(rows), encoding="utf-8")
        console.print(f"wrote {PAGE}")


if __name__ == "__main__":
    main()
