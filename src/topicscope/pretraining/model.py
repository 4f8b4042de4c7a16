"""The transformer: the library's classes, its masking, and its loss at masked places only.

W_K, W_Q and W_V start near zero. Their norms, and the rotation of W_V, are measured at every step, layer by layer.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from topicscope.ground import Stream, needed, torch_seed
from topicscope.language import LibraryModel, Tokenizer, shifted_right
from topicscope.measure import ROTATION_SPAN, rotations
from topicscope.pretraining.config import Masking, PretrainConfig, Shape
from topicscope.pretraining.run import FIGURES, PARTS

if TYPE_CHECKING:
    from transformers import PretrainedConfig

BLOCK = 50  # so many steps are read out together, so that a GPU does not wait at every step
# the library's names of our sizes
ENCODER = {
    "dim": ["hidden_size"],
    "layers": ["num_hidden_layers"],
    "heads": ["num_attention_heads"],
    "feedforward": ["intermediate_size"],
    "dropout": ["hidden_dropout_prob", "attention_probs_dropout_prob"],
}
BART = {
    "dim": ["d_model"],
    "layers": ["encoder_layers", "decoder_layers"],
    "heads": ["encoder_attention_heads", "decoder_attention_heads"],
    "feedforward": ["encoder_ffn_dim", "decoder_ffn_dim"],
    "dropout": ["dropout", "attention_dropout", "activation_dropout"],
}
# names of the modules between the last hidden states and the logits; other models have `lm_head`
HEADS = {"bert": ["cls"], "albert": ["predictions"], "electra": ["generator_predictions", "generator_lm_head"]}


def build_model(config: PretrainConfig, tokenizer: Tokenizer) -> LibraryModel:
    """A masked language model with fresh weights; W_K, W_Q and W_V start at `init_scale`."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(torch_seed(config.seed, Stream.PRETRAINED_WEIGHTS))
        model = needed("transformers", "pretraining").AutoModelForMaskedLM.from_config(
            library_config(config.model, tokenizer, config.length)
        )
    with torch.no_grad():  # everything else stays as the library made it
        for number, layer in enumerate(attention_layers(model)):
            for which, part in enumerate(PARTS):
                scale, matrix = config.model.init_scale_of(part, layer.layer), getattr(layer, part)
                if scale != "usual":
                    seed = torch_seed(config.seed, Stream.PRETRAINED_WEIGHTS, 1 + number, which)
                    matrix.copy_(scale * torch.randn(matrix.shape, generator=torch.Generator().manual_seed(seed)))
    return model


def library_config(shape: Shape, tokenizer: Tokenizer, length: int) -> "PretrainedConfig":
    sizes = {**vars(shape), "feedforward": shape.feedforward or 4 * shape.dim}
    names = BART if shape.architecture == "bart" else ENCODER
    settings = {name: sizes[part] for part in names for name in names[part] if sizes[part] != "usual"}
    ids = {"pad": tokenizer.pad_token_id, "bos": tokenizer.cls_token_id, "eos": tokenizer.sep_token_id}
    settings |= {f"{name}_token_id": number for name, number in ids.items() if number is not None}
    ends = {"decoder_start_token_id": ids["eos"] or 0, "forced_eos_token_id": ids["eos"]}
    narrow = {"embedding_size": min(128, shape.dim)}
    settings |= {"bart": ends, "albert": narrow, "electra": narrow}.get(shape.architecture, {})
    if shape.architecture == "roberta":  # its positions start after its padding token's number
        length += settings.get("pad_token_id", 1) + 1
    return needed("transformers", "pretraining").AutoConfig.for_model(
        shape.architecture, vocab_size=len(tokenizer), max_position_embeddings=length, **settings
    )


STACKS = ("encoder", "decoder", "cross")


@dataclass(frozen=True)
class AttentionLayer:
    """The matrices of one attention layer, heads side by side.

    `name` is '0', '1', ...; 'encoder_0', 'decoder_0', 'cross_0' in models of several parts.
    """

    name: str
    layer: int
    key: Float[Tensor, "d d"]
    query: Float[Tensor, "d d"]
    value: Float[Tensor, "d d"]


def attention_layers(model: LibraryModel) -> list[AttentionLayer]:
    """In the order of the layers; a model that uses one layer again and again (ALBERT) has one."""
    found = []
    for path, module in model.named_modules():
        for names in (PARTS, ("k_proj", "q_proj", "v_proj")):
            if all(isinstance(getattr(module, name, None), nn.Linear) for name in names):
                stack = 2 if "encoder_attn" in path else 1 if ".decoder." in path else 0
                layer, weights = re.findall(r"\.(\d+)\.", path)[-1], [getattr(module, name).weight for name in names]
                found.append((stack, int(layer), weights))
    several = any(stack > 0 for stack, _, _ in found)
    return [
        AttentionLayer(f"{STACKS[stack]}_{layer}" if several else str(layer), layer, *weights)
        for stack, layer, weights in sorted(found, key=lambda entry: entry[:2])
    ]


class Masker:
    """Draws the masks of each micro-batch: which tokens are predicted, and what stands in their place.

    Each micro-batch has a random stream of its own, so that every process can draw the masks of all.
    """

    def __init__(self, tokenizer: Tokenizer, masking: Masking, seed: int) -> None:
        self.seed, self.special = seed, torch.tensor(tokenizer.all_special_ids)
        self.collator = needed("transformers", "pretraining").DataCollatorForLanguageModeling(
            tokenizer,
            mlm=True,
            mlm_probability=masking.p_mask,
            mask_replace_prob=1 - masking.p_correct - masking.p_random,
            random_replace_prob=masking.p_random,
        )

    def __call__(
        self, rows: Int[np.ndarray, "B N"], step: int, number: int, stream: Stream = Stream.MASKED_TOKENS
    ) -> tuple[Int[Tensor, "B N"], Int[Tensor, " M"], Int[Tensor, " M"]]:
        """What the model sees, the places (in the flattened rows) whose token it predicts, and these tokens."""
        tokens = torch.from_numpy(rows.astype(np.int64))
        self.collator.generator = torch.Generator().manual_seed(torch_seed(self.seed, stream, step, number))
        shown, labels = self.collator.torch_mask_tokens(tokens, special_tokens_mask=torch.isin(tokens, self.special))
        places = torch.nonzero(labels.flatten() != -100)[:, 0]
        return shown, places, labels.flatten()[places]


class MaskedLoss(nn.Module):
    """The loss of a masked language model: the sum over masked places of -log p(token), in nats.

    Only the masked places go through the output head.
    """

    def __init__(self, model: LibraryModel) -> None:
        super().__init__()
        self.model = model

    def forward(
        self, shown: Int[Tensor, "B N"], places: Int[Tensor, " M"], targets: Int[Tensor, " M"]
    ) -> Float[Tensor, ""]:
        """A decoder reads the whole text, one place later, and predicts the masked tokens: denoising."""
        config = self.model.config
        inputs: dict[str, Tensor | bool] = {"input_ids": shown}
        if config.is_encoder_decoder:
            text = shown.flatten().index_copy(0, places, targets).view_as(shown)
            inputs["decoder_input_ids"], _ = shifted_right(text, torch.ones_like(text), config)
            inputs["use_cache"] = False
        rows = self.model.base_model(**inputs).last_hidden_state.flatten(0, 1)[places]
        for name in HEADS.get(config.model_type, ["lm_head"]):
            rows = getattr(self.model, name)(rows)
        logits = rows + self.model.final_logits_bias if config.model_type == "bart" else rows
        return nn.functional.cross_entropy(
            logits.float() if logits.dtype == torch.bfloat16 else logits, targets, reduction="sum"
        )


class Tracker:
    """Row s describes the weights before step s, and their loss on batch s.

    Figures stay on the device until a block of them is read: a look at each would make the host wait at every step.
    """

    def __init__(self, layers: list[AttentionLayer]) -> None:
        self.layers = layers
        self.matrices = [getattr(layer, part) for part in PARTS for layer in layers]
        count, value = len(layers), layers[0].value
        self.names = (
            *FIGURES,
            *(f"norm_{part}_{layer.name}" for part in PARTS for layer in layers),
            *(f"rotation_{layer.name}" for layer in layers),
        )
        self.table = torch.zeros((BLOCK, 4 * count), device=value.device)  # norms, and products with W_V ten steps ago
        # W_V at the last steps, as a ring
        self.history = torch.zeros((ROTATION_SPAN, count, value.numel()), device=value.device)
        self.past_norms = np.full((ROTATION_SPAN, count), math.nan)  # oldest first
        self.start = 0  # step of the first row held
        # of each row held; the final weights make no step, and have a rate alone
        self.rates: list[float] = []
        self.losses: list[Float[Tensor, ""]] = []  # sums over this process's share of the masked places
        self.places: list[int] = []  # masked places of the whole step
        self.gradient_norms: list[Float[Tensor, ""]] = []
        self.held_out: dict[int, Float[Tensor, ""]] = {}  # by row: this process's share

    @property
    def row(self) -> int:
        return len(self.rates)

    @torch.no_grad()
    def record(self, step: int, lr: float) -> None:
        row, norms = self.table[self.row], 3 * len(self.layers)
        self.start = step if self.row == 0 else self.start
        torch.stack(torch._foreach_norm(self.matrices), out=row[:norms])
        ring, now = self.history[step % ROTATION_SPAN], torch.stack([layer.value.flatten() for layer in self.layers])
        torch.sum(ring.mul_(now), 1, out=row[norms:])  # |before| |now| cos; `rows` turns it into a rotation
        ring.copy_(now)
        self.rates.append(lr)

    def measured(self, loss: Float[Tensor, ""], places: int, gradient_norm: Float[Tensor, ""]) -> None:
        self.losses.append(loss)
        self.places.append(places)
        self.gradient_norms.append(gradient_norm)

    def last_loss(self) -> float:
        """Of the last step, this process's share. The host waits for it."""
        return float(self.losses[-1]) / self.places[-1]

    def rows(self, added: Callable[[Tensor], Tensor] = lambda shares: shares) -> Float[np.ndarray, "S M"]:
        """The figures of all steps since the last call; `added` adds up the shares of all processes."""
        missing = torch.full((), math.nan, device=self.table.device)
        unmeasured = [missing] * (self.row - len(self.losses))
        held_out = [self.held_out.get(row, missing) for row in range(self.row)]
        shares = added(torch.stack([*self.losses, *unmeasured, *held_out])).reshape(2, self.row).cpu()
        shares[0, : len(self.places)] /= torch.tensor(self.places, dtype=shares.dtype)
        gradient_norms = torch.stack([*self.gradient_norms, *unmeasured]).cpu()
        figures = np.column_stack([shares[0], self.rates, gradient_norms, shares[1]])  # in the order of FIGURES
        table = np.concatenate([figures, self.table[: self.row].cpu().numpy()], 1)
        turning = len(self.names) - len(self.layers)  # the first column of rotations; norms of W_V are before it
        lengths = np.concatenate([self.past_norms, table[:, turning - len(self.layers) : turning]])
        table[:, turning:] = rotations(table[:, turning:], lengths)
        self.past_norms = lengths[-ROTATION_SPAN:]
        for held in (self.rates, self.losses, self.places, self.gradient_norms, self.held_out):
            held.clear()
        return table
