"""The metrics: verl's names, the articles' and TRL's as aliases, families by prefix."""

import re
from collections import Counter

import pytest

from leverl.errors import ConfigError
from leverl.vocabulary.metrics import METRICS, Metric, is_metric, metric

OURS = """
actor/pg_loss actor/pg_clipfrac actor/pg_clipfrac_lower actor/ppo_kl actor/kl_loss actor/reward_kl_penalty
actor/entropy actor/grad_norm actor/lr critic/lr critic/vf_loss critic/vf_clipfrac critic/vf_explained_var
critic/grad_norm critic/score/mean critic/score/max critic/score/min critic/score/std critic/rewards/mean
critic/advantages/mean critic/advantages/max critic/advantages/min critic/returns/mean critic/values/mean
response_length/mean response_length/max response_length/min response_length/p99 response_length/clip_ratio
prompt_length/mean timing_s/gen timing_s/reward timing_s/ref timing_s/values timing_s/old_log_prob
timing_s/update_actor timing_s/update_critic timing_s/sync timing_s/eval timing_s/save timing_s/step
perf/tokens_per_second perf/memory_gb perf/gpu_memory_gb perf/gpu_utilisation group/reward_std
group/dead_share kl_divergence kl_divergence_k3 ratio/below ratio/inside ratio/above ratio/histogram
ratio/first rollout_success_rate rollout/truncated rollout/unscored reward/errors rollout/mismatch_mean
rollout/mismatch_max rollout/mismatch_k3 rollout/ess sync/weight_version eval/score eval/score_se
eval/length eval/truncated train/epoch train/responses train/tokens train/updates
"""


@pytest.mark.parametrize("name", OURS.split())
def test_what_the_engine_logs_is_named(name: str):
    assert metric(name).name == name


def test_no_word_means_two_metrics():
    words = Counter(word for entry in METRICS for word in (entry.name, *entry.aliases))
    assert [word for word, count in words.items() if count > 1] == []


@pytest.mark.parametrize("entry", METRICS, ids=lambda entry: entry.name)
def test_a_metric_is_described(entry: Metric):
    assert entry.text.endswith(".")
    assert "  " not in entry.text
    assert re.search(r"[\u4e00-\u9fff]", entry.zh)
    assert entry.direction in ("up", "down", "none")


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        # the articles'
        ("reward_mean", "critic/score/mean"),
        ("policy_ratio", "ratio/histogram"),
        ("response_length_mean", "response_length/mean"),
        # TRL's
        ("reward", "critic/score/mean"),
        ("reward_std", "group/reward_std"),
        ("frac_reward_zero_std", "group/dead_share"),
        ("kl", "kl_divergence"),
        ("clip_ratio/region_mean", "actor/pg_clipfrac"),
        ("completions/clipped_ratio", "rollout/truncated"),
        ("objective/rlhf_reward", "critic/rewards/mean"),
        ("step_time", "timing_s/step"),
        # verl's, where we use another name
        ("timing_s/update_weights", "timing_s/sync"),
        ("timing_s/testing", "timing_s/eval"),
        ("rollout_corr/k3_kl", "rollout/mismatch_k3"),
    ],
)
def test_aliases(alias: str, name: str):
    assert metric(alias).name == name


def test_series_that_look_alike_stay_apart():
    """Four KLs, two rewards, two entropies: merging any of them makes rules fire on the wrong series."""
    kls = {
        metric(name).name
        for name in ("kl_divergence", "actor/ppo_kl", "actor/kl_loss", "rollout/mismatch_k3")
    }
    assert len(kls) == 4
    assert metric("objective/kl").name not in kls
    assert metric("actor/pg_clipfrac_lower").name != metric("actor/pg_clipfrac").name
    assert metric("critic/rewards/mean").name != metric("reward_mean").name
    assert not is_metric("objective/entropy")


def test_a_family_member_keeps_its_name():
    found = metric("timing_s/adv")
    assert (found.name, found.unit, found.direction) == ("timing_s/adv", "s", "down")
    assert metric("timing_s/gen").zh == "生成耗时"
    assert metric("rewards/format/mean").name == "rewards/format/mean"
    assert metric("reward_extra/acc").text == metric("reward_extra/*").text
    assert metric("val-core/openai/gsm8k/acc/mean@8").direction == "up"
    assert not is_metric("timing_s/")


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("reward_maen", "Did you mean 'reward_mean'?"),
        ("eval/scor", "Did you mean 'eval/score'?"),
        ("xyzzy", "'xyzzy'"),
    ],
)
def test_an_unknown_metric_is_refused_with_a_hint(word: str, says: str):
    with pytest.raises(ConfigError, match=re.escape(says)):
        metric(word)
