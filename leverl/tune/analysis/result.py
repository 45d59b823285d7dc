"""What an analysis finds. Plain numbers; scores are in the unit and the direction of the objective."""

from collections.abc import Mapping
from dataclasses import dataclass

from leverl.tune.model import Params, ParamValue


@dataclass(frozen=True)
class Standing:
    """What is believed of a configuration's true mean score after search and race."""

    config_id: str
    mean: float
    sd: float
    probability_best: float | None  # among those still in question; None for a configuration that is not
    rank: float  # median over draws from the joint posterior; 1 is the best
    rank_low: float  # 90 % interval of it
    rank_high: float


@dataclass(frozen=True)
class Importance:
    """A lever's total effect: the share of the variance of scores over the space that it takes part in."""

    lever: str
    median: float
    low: float  # 90 % interval over draws from the posterior
    high: float


@dataclass(frozen=True)
class SlicePoint:
    """The model's opinion at one value of a lever, all else as recommended."""

    value: ParamValue
    mean: float
    sd: float


@dataclass(frozen=True)
class Slice:
    """One lever varied, the others as in the configuration `centre`."""

    lever: str
    points: tuple[SlicePoint, ...]  # in order along the axis; values that cannot run are missing
    at: ParamValue | None  # the value of `centre`


@dataclass(frozen=True)
class Surface:
    """Two levers varied, the others as in `centre`. `mean[row][column]` is None where nothing can run."""

    across: str
    up: str
    across_values: tuple[ParamValue, ...]
    up_values: tuple[ParamValue, ...]
    mean: tuple[tuple[float | None, ...], ...]
    sd: tuple[tuple[float | None, ...], ...]


@dataclass(frozen=True)
class Prediction:
    """A configuration as the model predicts it from all others."""

    config_id: str
    observed: float
    predicted: float
    sd: float  # of the observed mean, noise included

    @property
    def inside(self) -> bool:
        """Whether the observed mean lies in the 95 % interval of the prediction."""
        return abs(self.observed - self.predicted) <= 1.96 * self.sd


@dataclass(frozen=True)
class Noise:
    """How far a run's score strays from its configuration's true mean."""

    seed_sd: float  # between seeds
    evaluation_sd: float  # of one run's score, by its evaluations; 0 if unknown
    share: float  # of the variance of single runs' scores: 1 − intraclass correlation
    degrees: int  # of freedom of replicates behind it; 0: inferred from all scores together


@dataclass(frozen=True)
class Model:
    """What the surrogate says; its opinion of levers is about runs that give a score."""

    noise: Noise
    importance: tuple[Importance, ...]  # the most important first
    centre: str  # configuration through which slices and surface are laid
    slices: tuple[Slice, ...]  # in the order of importance
    surface: Surface | None  # of the two most important levers; None with a single lever
    left_out: tuple[Prediction, ...]

    @property
    def coverage(self) -> float | None:
        """Share of configurations inside their 95 % interval when left out; about 0.95 is right."""
        if not self.left_out:
            return None
        return sum(one.inside for one in self.left_out) / len(self.left_out)


@dataclass(frozen=True)
class Lead:
    """Who led when so many runs had started, and what was believed of it then."""

    runs: int
    spent: Mapping[str, float]  # responses, steps, seconds, gpu_seconds up to there
    config_id: str
    mean: float
    sd: float
    params: Params


@dataclass(frozen=True)
class TradeOff:
    """What a configuration costs and brings. `best_buy`: none is both cheaper and better."""

    config_id: str
    score: float  # posterior mean
    sd: float
    seconds: float | None  # of a run at full length; None where nothing was measured
    gpu_seconds: float | None
    steps_to_90: float | None  # first step with 90 % of the run's own gain, mean over its finished runs
    kl: float | None
    best_buy: bool = False


@dataclass(frozen=True)
class Agreement:
    """Whether two seeds rank configurations alike (Kendall's tau-b): 1 alike, 0 unrelated, −1 reversed."""

    phase: str
    tau: float  # mean over the pairs of seeds with three or more configurations in common
    pairs: int
    configurations: int  # with a score on more than one seed of the phase


@dataclass(frozen=True)
class Bound:
    """A bound on a metric, checked for the configuration in front."""

    text: str  # "kl_divergence <= 0.1"
    value: float | None
    kept: bool


@dataclass(frozen=True)
class Analysis:
    """All of it. `model` is None, and `without_model` says why, where runs are too few for a surrogate."""

    leader: str
    standings: tuple[Standing, ...]  # best posterior mean first
    course: tuple[Lead, ...]  # in order of cost
    trade_offs: tuple[TradeOff, ...]
    agreement: tuple[Agreement, ...]
    bounds: tuple[Bound, ...]
    left_out_levers: Mapping[str, str]  # levers of `space: default` that were not searched, and why
    model: Model | None
    without_model: str = ""
