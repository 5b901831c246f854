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

"""A finding, its severity, and a fact that could not be read."""

from __future__ import annotations

import dataclasses
import enum
from typing import Any, Callable, Iterable, Sequence

_SHOWN = 3


class Severity(enum.IntEnum):
    """How bad a finding is; the worst comes last."""

    #: The check could not be made.
    UNKNOWN = 0
    #: The product works, and worse than it could.
    WARNING = 1
    #: The product, or a part of it, is switched off.
    ERROR = 2


@dataclasses.dataclass(frozen=True)
class Finding:
    """One thing that is wrong.

    :param subject: part of the installation that was checked
    :param what: is wrong
    :param remedy: what to do
    """

    severity: Severity
    subject: str
    what: str
    remedy: str


@dataclasses.dataclass(frozen=True)
class Unread:
    """Stands for a fact that could not be read.

    :param why: it could not
    :param severity: ERROR where the product could not read it either
    """

    why: str
    remedy: str
    severity: Severity = Severity.UNKNOWN


@dataclasses.dataclass(frozen=True)
class Check:
    """A check, and the facts that it takes.

    :param facts: names of attributes of the facts, the arguments of ``work`` in this order
    :param work: returns the findings; it raises nothing and asks no service
    """

    subject: str
    facts: tuple[str, ...]
    work: Callable[..., Iterable[Finding]]


def error(subject: str, what: str, remedy: str) -> Finding:
    """Return a finding that switches the product, or a part of it, off."""
    return Finding(Severity.ERROR, subject, what, remedy)


def warning(subject: str, what: str, remedy: str) -> Finding:
    """Return a finding that the product works in spite of."""
    return Finding(Severity.WARNING, subject, what, remedy)


def examine(checks: Sequence[Check], facts: Any) -> list[Finding]:
    """Make all checks; return the findings, the worst first.

    A check whose facts could not be read is unknown. Checks that lack the same fact have one
    finding together.
    """
    found: list[Finding] = []
    for check in checks:
        given = [getattr(facts, name) for name in check.facts]
        unread = [one for one in given if isinstance(one, Unread)]
        found += [Finding(one.severity, check.subject, one.why, one.remedy) for one in unread]
        if unread:
            continue
        try:
            found += check.work(*given)
        except Exception as defect:
            # A defect in one check must not cost the others.
            found.append(Finding(Severity.UNKNOWN, check.subject,
                                 f'the check failed: {type(defect).__name__}: {defect}',
                                 'report this as a defect of tracon-watcher'))
    return sorted(_joined(found), key=lambda one: -one.severity)


def exit_status(found: Iterable[Finding]) -> int:
    """Return 0 where nothing was found, 2 where an error was, 1 otherwise."""
    worst = max((one.severity for one in found), default=None)
    return 0 if worst is None else 2 if worst == Severity.ERROR else 1


def some(names: Iterable[str]) -> str:
    """Return the first few of some names, and how many more there are."""
    listed = sorted(names)
    more = len(listed) - _SHOWN
    return ', '.join(listed[:_SHOWN]) + (f' and {more} more' if more > 0 else '')


def _joined(found: Iterable[Finding]) -> list[Finding]:
    subjects: dict[tuple[Severity, str, str], dict[str, None]] = {}
    for one in found:
        subjects.setdefault((one.severity, one.what, one.remedy), {})[one.subject] = None
    return [Finding(severity, ', '.join(names), what, remedy)
            for (severity, what, remedy), names in subjects.items()]
