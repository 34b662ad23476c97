"""Every setting of a training run, checked once, loadable from TOML.

A file holds the fields of `TrainConfig` at its top level and may name a `preset` to start from:

    preset = "cpu-small"
    learning_rate = 3e-6

`paper` is the recipe of Cobalt (arXiv 2602.03806); `modern` is the same with what the field does today: no reference model,
a bolder upper clip, the mean as a baseline and nothing else, weights for what the engine computes differently. `cpu-small`
moves a model of a hundred million parameters on two cores.
There is no nesting; the command line has a flag for the most used fields and `--set NAME=VALUE` for every one.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, get_args, get_type_hints

from cobalt_data.engines import choose_engine
from cobalt_data.engines.base import Sampling
from cobalt_data.errors import InputError
from cobalt_data.templates import AUTO
from cobalt_train.advantages import ADVANTAGES
from cobalt_train.credit import Verpo
from cobalt_train.objectives import KL_TERMS, OBJECTIVES, Clip
from cobalt_train.reward import REWARDS

# The settings that an algorithm starts from, over those of the preset.
ALGORITHMS: Mapping[str, Mapping[str, Any]] = {
    "cobalt": {},
    "grpo-mt": {"reward": "binary"},
    "verpo": {"reward": "binary", "advantage": "mean"},
}
OUTCOMES = ("final", "best")
DTYPES = ("float32", "bfloat16")
NONE = "none"  # in a file or a flag, what TOML has no word for
ENGINES = ("auto", "transformers", "vllm")  # those that work in token ids
SLEEP_LEVELS = (0, 1, 2)

# What a resumed run may change: how long it goes on, what it keeps, and how it cuts the same work into pieces.
FREE_ON_RESUME = frozenset(
    {
        "steps",
        "epochs",
        "save_every",
        "keep_last",
        "eval_every",
        "micro_batch_tokens",
        "gradient_checkpointing",
        "engine_memory_share",
        "sleep_level",
    }
)


@dataclass(frozen=True, slots=True)
class TrainConfig:
    algo: str = "cobalt"
    seed: int = 0

    # how long: `steps` if given, else `epochs` passes over the prompts
    steps: int | None = None
    epochs: int = 2
    save_every: int = 10  # steps; the last step is saved in any case
    keep_last: int = 2  # checkpoints
    eval_every: int = (
        0  # steps between validations on the side `validation`, whose best checkpoint is kept; 0 for never
    )

    # one step: `prompts_per_step` groups of `group_size` completions, used for `optimizer_steps` updates
    prompts_per_step: int = 128
    group_size: int = 16
    optimizer_steps: int = 2
    max_prompt_tokens: int = 10_240  # longer prompts are left out and counted
    max_tokens: int = 6_144  # of one completion
    temperature: float = 1.0
    top_p: float = 1.0

    # whole trajectories: `grpo-mt` and `verpo`; a group is then `group_size` trajectories of a problem
    turns: int = 3  # programs per trajectory
    outcome: str = "final"  # the program that decides on a trajectory, or "best"
    template: str = (
        AUTO  # what words the prompts: auto is that of the dataset's trajectories, else what suits the model
    )
    verpo_alpha: float = 1.0  # how much a test loses by being passed often
    verpo_sigma: float = 0.1  # within which pass rates are equally hard
    verpo_delta: float = 1e-6  # softens the count of equally hard tests
    verpo_beta: float = 0.5  # what a turn's own tests count beside the outcome
    verpo_gamma: float = 0.95  # what a success keeps for every program that it took

    # from completions to a loss
    reward: str = "paper"  # or a function of one's own: "rewards.py:function" or "module:function"
    advantage: str = "group_std"
    objective: str = "dapo"
    clip_low: float = 0.2
    clip_high: float = 0.4
    clip_dual: float | None = 3.0
    kl: str = "k2"
    kl_coefficient: float = 1e-4  # 0 leaves the reference model out of memory
    old_logprobs: str = "trainer"  # or "engine": the ratio is against what the engine reports, a forward pass is saved
    importance_cap: float | None = None  # bounds the weights that make up for a difference of engine and trainer

    # what is trained: all weights, or an adapter beside them (LoRA)
    lora_rank: int = 0  # of the adapter; 0 for all weights
    lora_alpha: int = 32  # the adapter counts lora_alpha / lora_rank
    lora_targets: str = "all-linear"  # or names of modules, such as "q_proj,v_proj"

    # the optimizer: AdamW, linear warm-up, then constant
    learning_rate: float = 1e-6
    warmup_steps: int = 0  # updates
    weight_decay: float = 0.01
    max_grad_norm: float = 1.0

    # how it is computed; none of this changes what is computed, beyond rounding
    shared_prefix: bool = True
    micro_batch_tokens: int = 16_384
    gradient_checkpointing: bool = False  # keep each layer's input alone, compute the rest again in the backward pass
    compute_dtype: str = "bfloat16"  # over float32 masters
    engine: str = "auto"  # vllm where it is installed, else transformers
    engine_dtype: str = "bfloat16"
    engine_memory_share: float | None = None  # of vllm: by default 0.3 of a GPU, 0.1 of the machine's memory on a CPU
    sleep_level: int = 0  # of vllm on a GPU, while the trainer learns: 1 moves weights to the host, 2 drops them

    def __post_init__(self) -> None:
        self._check_choices()
        self._check_numbers()
        self._check_sampling()
        self._check_combinations()
        self.sampling()
        self.clip()
        self.verpo()

    def _check_choices(self) -> None:
        for name, choices in (
            ("algo", ALGORITHMS),
            ("outcome", OUTCOMES),
            ("advantage", ADVANTAGES),
            ("objective", OBJECTIVES),
            ("kl", KL_TERMS),
            ("old_logprobs", ("trainer", "engine")),
            ("compute_dtype", DTYPES),
            ("engine", ENGINES),
            ("engine_dtype", DTYPES),
            ("sleep_level", SLEEP_LEVELS),
        ):
            if getattr(self, name) not in choices:
                raise InputError(f"{name} is {getattr(self, name)!r}: use one of {', '.join(map(str, choices))}")
        if self.reward not in REWARDS and not all(self.reward.rpartition(":")):
            raise InputError(
                f"reward is {self.reward!r}: use one of {', '.join(REWARDS)}, or a function: rewards.py:function"
            )

    def _check_numbers(self) -> None:
        for name, least in (
            ("epochs", 1),
            ("save_every", 1),
            ("keep_last", 1),
            ("eval_every", 0),
            ("prompts_per_step", 1),
            ("group_size", 2),
            ("turns", 1),
            ("optimizer_steps", 1),
            ("max_prompt_tokens", 1),
            ("micro_batch_tokens", 1),
            ("lora_rank", 0),
            ("lora_alpha", 1),
            ("warmup_steps", 0),
            ("kl_coefficient", 0),
            ("weight_decay", 0),
        ):
            if not least <= getattr(self, name) < float("inf"):
                raise InputError(f"{name} is {getattr(self, name)}: give at least {least}")
        if not 0 <= self.seed < 2**63:
            raise InputError(f"seed is {self.seed}: give an integer in [0, 2^63)")
        if self.steps is not None and self.steps < 1:
            raise InputError(f"steps is {self.steps}: give at least 1, or leave it out for {self.epochs} epochs")
        if not 0 < self.learning_rate < 1:
            raise InputError(f"learning_rate is {self.learning_rate}: give a number in (0, 1), such as 1e-6")
        if not self.max_grad_norm > 0:
            raise InputError(f"max_grad_norm is {self.max_grad_norm}: give a number above 0")
        if self.importance_cap is not None and not self.importance_cap >= 1:
            raise InputError(f'importance_cap is {self.importance_cap}: give at least 1, or "none"')
        if self.engine_memory_share is not None and not 0 < self.engine_memory_share < 1:
            raise InputError(f"engine_memory_share is {self.engine_memory_share}: give a number in (0, 1)")

    def _check_sampling(self) -> None:
        if self.temperature == 0:
            raise InputError("temperature is 0: greedy completions of a prompt are all the same, use 1.0")
        if self.top_p != 1:
            raise InputError(
                f"top_p is {self.top_p}: training needs 1.0, since a cut distribution is not the one that is trained"
            )

    def _check_combinations(self) -> None:
        if self.algo == "verpo" and (self.reward, self.advantage) != ("binary", "mean"):
            raise InputError(
                f"reward is {self.reward!r} and advantage {self.advantage!r}: verpo has its own, leave both out"
            )
        if self.importance_cap is not None and self.old_logprobs == "engine":
            raise InputError(
                'importance_cap needs old_logprobs = "trainer": against the engine the ratio has the weight in it'
            )
        if self.optimizer_steps > self.prompts_per_step:
            raise InputError(
                f"optimizer_steps is {self.optimizer_steps}, prompts_per_step only {self.prompts_per_step}: "
                "every update needs a prompt"
            )

    def sampling(self) -> Sampling:
        return Sampling(temperature=self.temperature, top_p=self.top_p, max_tokens=self.max_tokens)

    def clip(self) -> Clip:
        return Clip(self.clip_low, self.clip_high, self.clip_dual)

    def verpo(self) -> Verpo:
        return Verpo(self.verpo_alpha, self.verpo_sigma, self.verpo_delta, self.verpo_beta, self.verpo_gamma)


PRESETS: Mapping[str, Mapping[str, Any]] = {
    "paper": {},
    "modern": {"clip_high": 0.28, "kl_coefficient": 0.0, "advantage": "mean", "importance_cap": 2.0},
    "cpu-small": {
        "epochs": 1,
        "prompts_per_step": 4,
        "group_size": 8,
        "optimizer_steps": 1,
        "max_prompt_tokens": 1_024,
        "max_tokens": 96,
        "temperature": 0.7,  # at 1.0 so small a model seldom writes a program at all
        "kl_coefficient": 0.0,
        "advantage": "mean",  # most groups solve nothing: divided by their spread, what little differs there would rule
        "learning_rate": 2e-5,
        "weight_decay": 0.0,
        "micro_batch_tokens": 2_048,  # a group at a time, its prompt computed once
        "gradient_checkpointing": True,
    },
}


def load_config(file: Path | None = None, preset: str | None = None, **overrides: Any) -> TrainConfig:
    """A preset (`paper` by default), over it what the algorithm starts from, the file, the overrides.

    Raises InputError, naming the file and the setting, for what is unknown or of the wrong type.
    """
    settings = _read_toml(file) if file is not None else {}
    name = preset or settings.pop("preset", "paper")
    settings.pop("preset", None)
    if not isinstance(name, str) or name not in PRESETS:
        raise InputError(f"preset {name!r} is unknown: use one of {', '.join(PRESETS)}")
    chosen = {**_checked(settings, str(file)), **_checked(overrides, "settings")}
    return TrainConfig(**{**PRESETS[name], **ALGORITHMS.get(chosen.get("algo"), {}), **chosen})


def with_engine(config: TrainConfig, processes: int) -> TrainConfig:
    """With the engine that `auto` means in a run of so many processes. Raises InputError for what that engine does not take."""
    only_embedded = config.engine == "auto" and (config.lora_rank or processes > 1)
    chosen = replace(config, engine="transformers" if only_embedded else choose_engine(config.engine))
    if chosen.engine == "vllm":
        if config.lora_rank and config.sleep_level == 2:
            raise InputError(
                "sleep_level 2 drops the weights beside an adapter, which is handed over alone: use 0 or 1"
            )
        if processes > 1:
            raise InputError("engine vllm does not share a run of several processes yet: set engine = transformers")
    elif config.engine_memory_share is not None or config.sleep_level:
        raise InputError(
            "engine transformers shares no memory and sleeps by itself: leave out engine_memory_share and sleep_level"
        )
    return chosen


def parse_settings(pairs: Sequence[str]) -> dict[str, Any]:
    """Settings given as `name=value`, the value spelled as in TOML; a bare word stands for itself.

    Raises InputError for what is unknown or of the wrong type.
    """
    settings: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise InputError(f"{pair!r} is no setting: give NAME=VALUE, such as kl_coefficient=0")
        try:
            settings[name.strip()] = tomllib.loads(f"value = {value}")["value"]
        except ValueError:
            settings[name.strip()] = value.strip()
    return _checked(settings, "--set")


def _read_toml(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror})") from None
    except ValueError as error:  # of its syntax, its encoding, or an integer of thousands of digits
        raise InputError(f"{file}: is not valid TOML: {error}") from None


def _checked(settings: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The settings with whole numbers made floats where a float is meant, and "none" made None where a setting may be left out.

    A setting is of the type of its field.
    """
    hints = get_type_hints(TrainConfig)
    known = {field.name: get_args(hints[field.name]) or (hints[field.name],) for field in fields(TrainConfig)}
    checked = {}
    for name, value in settings.items():
        if name not in known:
            raise InputError(f"{where}: {name!r} is no setting; known are {', '.join(known)}")
        if value == NONE and type(None) in known[name]:
            value = None
        if type(value) is int and float in known[name]:
            try:
                value = float(value)
            except OverflowError:
                raise InputError(f"{where}: {name} has {len(str(value))} digits: give a number below 1e308") from None
        if type(value) not in known[name]:
            wanted = " or ".join(kind.__name__ for kind in known[name] if kind is not type(None))
            raise InputError(f"{where}: {name} is {value!r}: give a value of type {wanted}")
        checked[name] = value
    return checked
