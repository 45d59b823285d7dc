"""What leverl raises. Each message says where, what was found, what is allowed and what to do.

The class carries the exit code of the command line (see docs/commands.md), so no command maps errors itself.
"""


class LeverlError(Exception):
    """Base of everything leverl raises on purpose."""

    exit_code = 3


class ConfigError(LeverlError, ValueError):
    """Wrong usage or configuration; nothing was started."""

    exit_code = 2


class DataError(ConfigError):
    """A prompt file or a row in it cannot be used; names file and line."""


class CheckpointError(ConfigError):
    """A checkpoint is missing, incomplete or does not fit the configuration."""


class EnvironmentProblem(LeverlError, RuntimeError):
    """Something outside the configuration is missing: an extra, disk space, a device."""

    exit_code = 4


class TrainingFailed(LeverlError, RuntimeError):
    """The run ended badly; its folder says how."""

    exit_code = 3


class NonFiniteLoss(TrainingFailed):
    """A loss or gradient became NaN or infinite."""


class RewardFailed(TrainingFailed):
    """The reward function raised more often than `reward.max_error_rate` allows."""
