"""What is masked before anything is published."""

from leverl.record.secrets import MASK, mask_settings, mask_text, secret_values

ENVIRONMENT = {
    "HF_TOKEN": "abcdefgh12345",
    "MY_API_KEY": "short",
    "HOME": "/home/someone",
    "LEVERL_RUN_TOKEN": "0123456789",
}


def test_values_of_secret_variables() -> None:
    assert secret_values(ENVIRONMENT) == ("abcdefgh12345",)
    text = "key abcdefgh12345 in /home/someone, 0123456789, hf_abcdefghijklmnopqrstuvwx"
    assert mask_text(text, ENVIRONMENT) == f"key {MASK} in /home/someone, 0123456789, {MASK}"


def test_settings_by_name_and_by_content_at_any_depth() -> None:
    settings = {
        "reward": {"judge_api_key": "x", "url": "http://a?k=abcdefgh12345", "list": ["abcdefgh12345", 1]},
        "data": {"prompt_key": "prompt"},
        "password": 3,
        "seed": 0,
    }
    assert mask_settings(settings, ENVIRONMENT) == {
        "reward": {"judge_api_key": MASK, "url": f"http://a?k={MASK}", "list": [MASK, 1]},
        "data": {"prompt_key": "prompt"},
        "password": MASK,
        "seed": 0,
    }
