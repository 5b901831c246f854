# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Requests to a sensor and its answers: signed, and checked before they count.

Sensor and generator share a secret. Each request is signed, so that a sensor works for its
generator alone; each answer is signed and repeats the request with its nonce, so that it can be
neither forged nor an old one.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
import pathlib
import secrets

from tracon_watcher import errors

#: Name of the header, of requests (over the target) and answers (over the body).
SIGNATURE = 'Tracon-Signature'
SCHEMA = 'tracon-sensor/1'
PORT = 8640
SECRET_BYTES = 32
# Linear congruential generator of the connection phase, modulo 2^64 (Knuth's MMIX).
_MULTIPLIER, _INCREMENT, _MODULUS = 6364136223846793005, 1442695040888963407, 1 << 64
# No core does a step of any work in less, by far.
_LEAST_SECONDS = {'/connection': 2e-10, '/memory': 5e-12, '/read': 1e-7, '/write': 1e-7}
# By how much two clocks may disagree on a moment.
_ROUNDING = 1e-3


class BadAnswer(errors.TraconError):
    """An answer of a sensor that does not count.

    :param kind: unsigned, refused, garbage, lies or too fast
    """

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


def read_secret(path: pathlib.Path) -> bytes:
    """Read a secret: 64 hexadecimal digits.

    :raises tracon_watcher.errors.InvalidOption: naming the file, never showing its content
    """
    remedy = f'a file of {2 * SECRET_BYTES} hexadecimal digits'
    try:
        secret = bytes.fromhex(path.read_text(encoding='ascii').strip())
    except OSError as error:
        raise errors.InvalidOption('secret file', str(path),
                                   f'{error.strerror}; {remedy} is needed') from None
    except ValueError:
        raise errors.InvalidOption('secret file', str(path), remedy) from None
    if len(secret) != SECRET_BYTES:
        raise errors.InvalidOption('secret file', str(path), remedy)
    return secret


def sign(secret: bytes, text: bytes) -> str:
    """Return HMAC-SHA256 in hexadecimal digits."""
    return hmac.new(secret, text, hashlib.sha256).hexdigest()


def target(path: str, parameter: str = '', amount: int = 0) -> str:
    """Return a request's target with a nonce of its own."""
    return f'{path}?nonce={secrets.token_hex(8)}' + (f'&{parameter}={amount}' if parameter else '')


def expected(asked: str) -> int:
    """Return the result of a request, by arithmetic rather than by doing the work."""
    path, nonce, amount = _parts(asked)
    if path == '/connection':
        return _jump(nonce, amount)
    if path == '/memory':
        return (nonce + amount * (amount - 1) // 2) % _MODULUS
    return amount


def _parts(asked: str) -> tuple[str, int, int]:
    """Return path, nonce and amount of a target."""
    path, _, query = asked.partition('?')
    values = dict(part.split('=') for part in query.split('&'))
    nonce = int(values.pop('nonce'), 16)
    return path, nonce, int(next(iter(values.values()), 0))


def _jump(state: int, steps: int) -> int:
    """Return the state after so many steps, in log2(steps) operations."""
    multiplier, increment = _MULTIPLIER, _INCREMENT
    while steps:
        if steps & 1:
            state = (state * multiplier + increment) % _MODULUS
        increment = increment * (multiplier + 1) % _MODULUS
        multiplier = multiplier * multiplier % _MODULUS
        steps >>= 1
    return state


def check(secret: bytes, asked: str, status: int, body: bytes, signature: str,
          elapsed: float) -> float:
    """Return the seconds that the sensor took for its work.

    :param asked: target of the request
    :param signature: value of the answer's header, empty without one
    :param elapsed: seconds from sending the request to the end of the answer
    :raises BadAnswer: when the answer does not count
    """
    if not hmac.compare_digest(signature.encode(), sign(secret, body).encode()):
        raise BadAnswer('unsigned', f'the answer {status} {body[:80]!r} has not the signature of '
                                    f'the shared secret: another program listens there, or the '
                                    f'secrets differ')
    if status != 200:
        raise BadAnswer('refused', f'the sensor answers {status}: '
                                   f'{body[:200].decode("utf-8", "replace").strip()}')
    try:
        content = json.loads(body)
        schema, repeated, seconds, result = (
            content[name] for name in ('schema', 'target', 'seconds', 'result'))
        seconds, result = float(seconds), int(result)
    except (ValueError, TypeError, KeyError, RecursionError):
        raise BadAnswer('garbage', f'the answer {body[:80]!r} is not of {SCHEMA}') from None
    if schema != SCHEMA or repeated != asked or not math.isfinite(seconds):
        raise BadAnswer('garbage', f'the answer {body[:80]!r} is not one to {asked}')
    if result != expected(asked):
        raise BadAnswer('garbage', f'the work has the result {result} instead of '
                                   f'{expected(asked)}')
    if seconds > elapsed + _ROUNDING:
        raise BadAnswer('lies', f'the sensor says that it worked for {seconds:.3g} s, and its '
                                f'answer came after {elapsed:.3g} s')
    path, _, amount = _parts(asked)
    if seconds < _LEAST_SECONDS.get(path, 0.0) * amount:
        raise BadAnswer('too fast', f'{seconds:.3g} s for {asked} are too few to be true')
    return seconds
