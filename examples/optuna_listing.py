"""The Optuna listing of the article on tuning verl (its section 3.2), with leverl as the trainer.

    python examples/optuna_listing.py 5        # five trials; the article takes 30

Changed: the import of `train_with_verl`, the model (the small one that leverl builds instead of llama-7b) and,
because of the model, the range of the learning rate. Everything else is the article's. Its advice has weak
points that docs/articles.md names; `leverl tune` does better: it proves its winner on fresh seeds.
"""

import sys

import optuna

from leverl import train_with_verl


def objective(trial: optuna.Trial) -> float:
    lr = trial.suggest_float("learning_rate", 1e-4, 1e-2, log=True)  # article: 1e-6 to 1e-5
    kl_coef = trial.suggest_float("kl_coef", 0.01, 0.2)
    ppo_epochs = trial.suggest_int("ppo_epochs", 4, 8)
    batch_size = trial.suggest_categorical("batch_size", [256, 512])

    config = {
        "model": "embedded",  # article: huggyllama/llama-7b
        "lr": lr,
        "kl_coef": kl_coef,
        "ppo_epochs": ppo_epochs,
        "batch_size": batch_size,
        "save_path": f"./checkpoints/trial_{trial.number}",
    }
    reward_score = train_with_verl(config)
    return reward_score


if __name__ == "__main__":
    study = optuna.create_study(direction="maximize")
    study.optimize(objective, n_trials=int(sys.argv[1]) if len(sys.argv) > 1 else 30)
    print(f"best: {study.best_value:.3f} with {study.best_params}")
