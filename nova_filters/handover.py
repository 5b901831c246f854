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

"""Hands a request's judgement from the filter to the weigher, which Nova calls right after it."""

from __future__ import annotations

import threading
import weakref

from nova_filters import judgement as judgements

# RequestSpecs are told apart by identity; a reference that has died marks what can be forgotten.
_given: dict[int, tuple[weakref.ref, judgements.Judgement]] = {}
_lock = threading.Lock()


def give(spec, judged: judgements.Judgement) -> None:
    """Keep the judgement of a RequestSpec until it is taken, or the spec is gone."""
    with _lock:
        for key in [key for key, (ref, _judged) in _given.items() if ref() is None]:
            del _given[key]
        _given[id(spec)] = (weakref.ref(spec), judged)


def take(spec) -> judgements.Judgement | None:
    """Return it, once: Nova filters and weighs again for each instance of a request."""
    with _lock:
        ref, judged = _given.pop(id(spec), (None, None))
    return judged if ref is not None and ref() is spec else None
