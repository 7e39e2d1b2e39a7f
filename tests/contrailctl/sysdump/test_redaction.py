"""Redaction: secrets in texts and in JSON values are replaced, and what a bug report needs stays."""

import json
from typing import Any

import pytest

from contrailctl.sysdump.redaction import redacted, redacted_text

SECRET = "hunter2-Zm9v"
TOKEN = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl"

TEXTS = {
    "yaml": f"auth:\n  password: {SECRET}\n  user: admin",
    "json": json.dumps({"admin_password": SECRET}),
    "json in json": json.dumps({"config": json.dumps({"apiKey": SECRET})}),
    "variable": f"CONTRAIL_API_TOKEN={SECRET} started",
    "option": f"--client-secret={SECRET}",
    "header": f"Authorization: Basic {SECRET}",
    "quote that is cut off": f'{{"password": "{SECRET} and {SECRET}',
    "quoted with spaces": f"password='{SECRET} and more {SECRET}'",
    "bearer token": f"sent Bearer {SECRET}",
    "JSON Web Token": f"got {TOKEN}",
    "URL": f"connecting to http://admin:{SECRET}@192.0.2.1:8082/",
    "private key": f"-----BEGIN EC PRIVATE KEY-----\n{SECRET}\n-----END EC PRIVATE KEY-----\n",
    "option and value": f"started with --auth-token {SECRET} --verbose",
    "kubeconfig": f"    client-key-data: {SECRET}\n",
    "login of a registry": json.dumps({"auths": {"registry.example": {"auth": SECRET}}}),
    "encoded private key": f"key LS0tLS1CRUdJTiBQUklWQVRF{SECRET.replace('-', '')}",
    "cut private key": f"-----BEGIN PRIVATE KEY-----\n{SECRET}",
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_secret_in_a_text_is_replaced(name: str) -> None:
    text = redacted_text(TEXTS[name])
    assert SECRET not in text
    assert SECRET.replace("-", "") not in text
    assert TOKEN not in text
    assert "<redacted>" in text


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-31T10:00:00.123Z INFO pod=shop/plain: assigned eth0 10.32.0.2 (k8s-default-pod-network)",
        '{"cniVersion": "1.0.0", "type": "contrail-k8s-cni", "ipam": {"subnet": "10.1.0.0/24"}}',
        "watch failed: https://192.0.2.1:6443/api/v1/pods: connection refused",
    ],
)
def test_other_texts_stay(text: str) -> None:
    assert redacted_text(text) == text


def test_values_are_replaced_by_their_names_at_any_depth() -> None:
    value: dict[str, Any] = {
        "spec": {"tokens": {"password": SECRET, "pin_secret": 7, "hasToken": True}, "nested": [{"apiKey": SECRET}]},
        "metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": SECRET, "note": "kept"}},
    }
    assert redacted(value) == {
        "spec": {
            "tokens": {"password": "<redacted>", "pin_secret": "<redacted>", "hasToken": True},
            "nested": [{"apiKey": "<redacted>"}],
        },
        "metadata": {"annotations": {"note": "kept"}},
    }


def test_all_texts_of_a_list_are_replaced_by_its_name() -> None:
    assert redacted({"tokens": [SECRET, 7, {"kept": "x"}]}) == {"tokens": ["<redacted>", "<redacted>", {"kept": "x"}]}


def test_the_word_after_an_option_is_replaced_by_its_name() -> None:
    value = ["serve", "--password", SECRET, "--listen", "192.0.2.1:80", "--token"]
    assert redacted({"args": value}) == {"args": ["serve", "--password", "<redacted>", *value[3:]]}


def test_all_values_of_environment_variables_are_replaced() -> None:
    env = [{"name": "HARMLESS", "value": SECRET}, {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}]
    assert redacted({"env": env}) == {"env": [{"name": "HARMLESS", "value": "<redacted>"}, env[1]]}


@pytest.mark.parametrize(
    "text",
    ["a" * 500_000, "token" * 50_000, "password='" * 50_000, "://" * 100_000, "--token" * 50_000],
    ids=["letters", "names", "quotes", "URLs", "options"],
)
def test_long_texts_take_time_in_proportion_to_their_length(text: str) -> None:
    assert redacted_text(text)  # in quadratic time this would take hours
