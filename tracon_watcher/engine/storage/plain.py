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

"""Between documents and the text of a column, and words that fit into theirs."""

from __future__ import annotations

import json
import math
from typing import Any, Mapping

from tracon_watcher import document
from tracon_watcher import errors

#: Bytes of a document at most: a hundred times the largest there is, and far below what MariaDB
#: takes in one statement as it is delivered.
LONGEST = 4 * 2**20


def encode(content: Any, source: str) -> str:
    """Return a JSON text of ASCII alone; numbers that are not finite become null.

    :raises tracon_watcher.errors.InvalidDocument: when it is none, or longer than :data:`LONGEST`
    """
    try:
        text = json.dumps(_finite(content), allow_nan=False, separators=(',', ':'))
    except (TypeError, ValueError, RecursionError) as error:
        raise errors.InvalidDocument(source, 'the document', str(error),
                                     'expected what JSON can express') from None
    if len(text) > LONGEST:
        raise errors.InvalidDocument(source, 'the length', len(text),
                                     f'expected at most {LONGEST} bytes')
    return text


def decode(text: str, source: str) -> Any:
    """Return what a column holds.

    :raises tracon_watcher.errors.InvalidDocument: when somebody else has written into it
    """
    try:
        return json.loads(text)
    except ValueError as error:
        raise errors.InvalidDocument(source, 'the text', text[-40:], f'no valid JSON ({error}); '
                                     'somebody has edited the database') from None


def word(fields: document.Fields, name: str, longest: int) -> str:
    """Return a short text of a document.

    :raises tracon_watcher.errors.InvalidDocument: when it is empty, too long or not printable
    """
    value = fields.string(name)
    if not fits(value, longest):
        fields.refuse(name, value, f'expected 1 to {longest} printable characters')
    return value


def fits(value: str, longest: int) -> bool:
    """Say whether a short text can be stored: PostgreSQL takes no NUL, nor half a character."""
    return 1 <= len(value) <= longest and value.isprintable()


def checked(source: str, name: str, value: str, longest: int) -> str:
    """Return a short text that is not part of a document.

    :raises tracon_watcher.errors.InvalidDocument: when it is empty, too long or not printable
    """
    if not isinstance(value, str) or not fits(value, longest):
        raise errors.InvalidDocument(source, name, value,
                                     f'expected 1 to {longest} printable characters')
    return value


def shortened(value: str, longest: int) -> str:
    """Return a text for people, made to fit."""
    text = ''.join(one if one.isprintable() else ' ' for one in value) or '-'
    return text if len(text) <= longest else text[:longest - 1] + '…'


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _finite(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(one) for one in value]
    return value
