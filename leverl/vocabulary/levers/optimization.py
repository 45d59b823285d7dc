"""Levers of `actor` and `critic`: their learning rates, and the optimizer settings both have."""

from typing import Literal

from leverl.vocabulary.lever import Lever, SearchRange

_ACTOR_OPTIM = "actor_rollout_ref.actor.optim"
_CRITIC_OPTIM = "critic.optim"

_LEARNING_RATES: tuple[Lever, ...] = (
    Lever(
        name="actor_learning_rate",
        path="actor.learning_rate",
        effect="learning",
        text="Step size of the policy. The lever that matters most.",
        zh="Actor 学习率",
        too_low="Score, kl_divergence and actor/entropy are all flat: the policy does not move.",
        too_high="A sawtooth (the score rises, then drops sharply), spikes of actor/grad_norm, "
        "kl_divergence shooting up in the first tenth of the run, then collapse.",
        advice="The article advises 1e-6–5e-6 (2e-6 for 7B) and to lower it when the reward is a sawtooth; "
        "verl's default is 1e-6, and 1e-7–1e-5 covers full fine-tuning (LoRA takes about ten times as "
        "much). The search range is for pretrained models; the embedded policy learns best near 1e-3. Where "
        "the base's value lies outside or near an end, `actor_learning_rate: default` searches a factor of 10 "
        "to both sides of it instead.",
        search=SearchRange("log", 1e-7, 1e-5, recommended=1e-6),
        verl=(f"{_ACTOR_OPTIM}.lr",),
        trl=("learning_rate",),
        aliases=("lr", "learning_rate", "actor_lr"),
    ),
    Lever(
        name="critic_learning_rate",
        path="critic.learning_rate",
        effect="learning",
        text="Step size of the value model (ppo).",
        zh="Critic 学习率",
        too_low="critic/vf_explained_var stays near 0 or below and critic/vf_loss does not fall: the "
        "advantages are noise.",
        too_high="critic/vf_loss and critic/grad_norm jump, critic/vf_explained_var swings below 0.",
        advice="The article advises 5e-6–1e-5, two to three times the actor's and never more than 3×, while "
        "its own baseline is 5× and verl's defaults are 10×; below 1× or above 15× deserves a look. Decide "
        "by critic/vf_explained_var, not by the ratio: raise it ×2 while that is low. The search range is "
        "for pretrained models, as at actor_learning_rate.",
        search=SearchRange("log", 1e-6, 1e-4, recommended=1e-5),
        verl=(f"{_CRITIC_OPTIM}.lr",),
        aliases=("critic_lr", "value_learning_rate"),
    ),
)

_OWN: tuple[Lever, ...] = (
    Lever(
        name="micro_batch_tokens",
        path="actor.micro_batch_tokens",
        effect="cost",
        text="Tokens, padding included, that go through a model at once in training, in the critic as in "
        "the actor; gradients are accumulated over them.",
        zh="训练微批 token 数",
        too_low="timing_s/update_actor grows: many small passes. A single longer response still forms a "
        "pass.",
        too_high="perf/memory_gb or perf/gpu_memory_gb climbs until the run ends out of memory.",
        advice="As large as fits, at least twice max_prompt_length + max_response_length. Results agree up "
        "to floating-point rounding. The article ties memory to rollout_micro_batch_size only; in training "
        "it is this.",
        search=SearchRange("pow2", 4096, 65536),
        verl=("actor_rollout_ref.actor.ppo_max_token_len_per_gpu", "actor_rollout_ref.actor.use_dynamic_bsz"),
    ),
    Lever(
        name="value_clip",
        path="critic.value_clip",
        effect="learning",
        text="How far one iteration may move a predicted value (ppo); null switches it off. Without effect "
        "when each batch is used for one update.",
        zh="价值裁剪范围",
        too_low="critic/vf_clipfrac is high and critic/vf_explained_var rises slowly.",
        too_high="critic/vf_loss may jump after unusual batches.",
        advice="In units of the return: 0.2 suits scores between 0 and 1; scale it with the rewards, or "
        "switch it off. verl uses 0.5.",
        verl=("critic.cliprange_value",),
        trl=("cliprange_value",),
        aliases=("cliprange_value", "critic_value_clip", "vf_clip"),
    ),
)


def _shared(section: Literal["actor", "critic"]) -> tuple[Lever, ...]:
    """The optimizer settings that actor and critic have alike. TRL's optimizer is listed with the actor."""
    optim = _ACTOR_OPTIM if section == "actor" else _CRITIC_OPTIM
    who, zh = ("policy", "Actor") if section == "actor" else ("critic", "Critic")

    def trl(key: str) -> tuple[str, ...]:
        return (key,) if section == "actor" else ()

    return (
        Lever(
            name=f"{section}_weight_decay",
            path=f"{section}.weight_decay",
            effect="learning",
            text=f"AdamW's pull of the {who}'s weights towards 0 at each step, multiplied by the learning "
            "rate.",
            zh=f"{zh} 权重衰减",
            too_low="Nothing to see in runs of usual length.",
            too_high="Score and values sink slowly although gradients are calm.",
            advice="At a learning rate of 1e-6 even 0.1 hardly acts. verl's default is 0.01.",
            search=SearchRange("log", 1e-3, 1e-1, other=0, recommended=0.01),
            verl=(f"{optim}.weight_decay",),
            trl=trl("weight_decay"),
        ),
        Lever(
            name=f"{section}_beta1",
            path=f"{section}.beta1",
            effect="learning",
            text=f"Memory of AdamW's mean gradient for the {who}: about 1/(1 − beta1) steps.",
            zh=f"{zh} Adam 一阶动量系数 β1",
            too_low="Steps follow the noise of single batches: the score jitters.",
            too_high="Steps follow outdated gradients: overshooting, slow waves in the score.",
            advice="0.9 nearly always.",
            verl=(f"{optim}.betas",),  # the first of a pair
            trl=trl("adam_beta1"),
        ),
        Lever(
            name=f"{section}_beta2",
            path=f"{section}.beta2",
            effect="learning",
            text=f"Memory of AdamW's squared gradient for the {who}: about 1/(1 − beta2) steps.",
            zh=f"{zh} Adam 二阶动量系数 β2",
            too_low="Step sizes fluctuate from batch to batch.",
            too_high="After a spike of the gradient norm, steps stay tiny for hundreds of updates; runs of "
            "a few hundred updates never leave the start-up phase.",
            advice="0.95 for runs of a few hundred updates; 0.999 is the default of verl and TRL.",
            search=SearchRange("logit", 0.9, 0.999, recommended=0.95),
            verl=(f"{optim}.betas",),  # the second of a pair
            trl=trl("adam_beta2"),
        ),
        Lever(
            name=f"{section}_epsilon",
            path=f"{section}.epsilon",
            effect="learning",
            text=f"Smallest divisor in AdamW's step of the {who}. Not the clip range, which TRL calls "
            "epsilon.",
            zh=f"{zh} Adam 数值稳定项 ε",
            too_low="Parameters with almost no gradient take full steps: noise after rewards have become "
            "constant.",
            too_high="Above the size of the gradients, AdamW turns into plain gradient descent: nothing "
            "moves.",
            advice="Leave it. verl offers it only through optim.override_optimizer_config.",
            trl=trl("adam_epsilon"),
        ),
        Lever(
            name=f"{section}_grad_clip",
            path=f"{section}.grad_clip",
            effect="learning",
            text=f"Largest norm of the {who}'s gradient; a larger one is scaled down to it.",
            zh=f"{zh} 梯度裁剪",
            too_low=f"{section}/grad_norm (logged before clipping) is always above it: every step is scaled "
            "down, which AdamW largely undoes.",
            too_high=f"A spike of {section}/grad_norm is followed by a drop of the score.",
            advice="1; after spikes 0.2–0.5. verl reads optim.clip_grad; its actor.grad_clip and "
            "critic.grad_clip do nothing.",
            search=SearchRange("log", 0.1, 2.0, recommended=1.0),
            verl=(f"{optim}.clip_grad",),
            trl=trl("max_grad_norm"),
        ),
        Lever(
            name=f"{section}_warmup_steps",
            path=f"{section}.warmup_steps",
            effect="learning",
            text=f"Iterations over which the {who}'s learning rate rises from 0 to its value.",
            zh=f"{zh} 学习率预热步数",
            too_low="A jump of the gradient norm and the KL in the first updates.",
            too_high="Flat curves at the start: steps of the budget are lost.",
            advice="About 10 for pretrained models; some after embedded_warm_start_steps, because AdamW's "
            "first steps are full-sized whatever the gradient.",
            search=SearchRange("int", 0, 20, recommended=10),
            verl=(f"{optim}.lr_warmup_steps",),
            trl=trl("warmup_steps"),
        ),
        Lever(
            name=f"{section}_schedule",
            path=f"{section}.schedule",
            effect="learning",
            text=f"How the {who}'s learning rate goes on after the warm-up: constant, or falling to 0 along "
            "a line or a cosine.",
            zh=f"{zh} 学习率调度",
            advice="constant for runs that may be extended: a falling rate depends on the planned number of "
            "steps. verl has constant and cosine.",
            search=SearchRange("categorical", values=("constant", "linear", "cosine")),
            verl=(f"{optim}.lr_scheduler_type",),
            trl=trl("lr_scheduler_type"),
        ),
    )


LEVERS: tuple[Lever, ...] = (*_LEARNING_RATES, *_OWN, *_shared("actor"), *_shared("critic"))
