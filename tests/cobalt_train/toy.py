"""Settings with which the toy model learns within a second."""

from cobalt_train.config import TrainConfig

CONFIG = TrainConfig(
    steps=4,
    save_every=1,
    prompts_per_step=3,
    group_size=8,
    optimizer_steps=1,
    max_prompt_tokens=32,
    max_tokens=3,
    kl_coefficient=0.0,
    learning_rate=1e-2,
    compute_dtype="float32",
    engine_dtype="float32",
)
