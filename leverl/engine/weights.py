"""The weights of a module by name, each tensor once: what trainer, sampler and weight sync agree on."""

from torch import Tensor, nn


def named_weights(module: nn.Module) -> dict[str, Tensor]:
    """Parameters and persistent buffers by name, in the module's order; a tied tensor only once."""
    aliases = tied_names(module)
    return {name: t for name, t in module.state_dict(keep_vars=True).items() if name not in aliases}


def tied_names(module: nn.Module) -> dict[str, str]:
    """Names that are only aliases -> the name under which `named_weights` lists the tensor.

    A tied language model head gives {"lm_head.weight": "model.embed_tokens.weight"}.
    """
    first: dict[int, str] = {}
    aliases: dict[str, str] = {}
    for name, tensor in module.state_dict(keep_vars=True).items():
        owner = first.setdefault(id(tensor), name)
        if owner != name:
            aliases[name] = owner
    return aliases
