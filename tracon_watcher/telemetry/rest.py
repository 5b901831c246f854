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

"""JSON client with bounded retries, and adaptive paging that isolates failing resources."""

from __future__ import annotations

import dataclasses
import json
import math
import random
import re
import reprlib
import time
from typing import Any, Callable, Iterable, Mapping, Sequence
import urllib.parse

from keystoneauth1 import adapter as ksa_adapter
from keystoneauth1 import exceptions as ksa_exceptions
from keystoneauth1 import http_basic
from keystoneauth1 import noauth
from keystoneauth1 import session as ksa_session
import requests
import urllib3

from tracon_watcher.telemetry import samples

_SMALLER = 4
# One that was refused alone so often is not asked for any more.
_CHANCES = 3
# When more of the pages than this fail, it is the service that is ill, not a resource.
_MOST_SUSPECT = 0.25


class Pages:
    """How resources are split into pages.

    For one resource that it cannot do, such as one with a metric under another archive policy, a
    service refuses the whole page, or never ends. In the next round that page is asked for in
    smaller ones, until the resource is found; at last it is left out until :meth:`forgive`.

    Where a round ends before all pages were asked for, the next one begins with those.

    :param size: of a page, in resources
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._suspects: dict[str, int] = {}
        self._refused_alone: dict[str, int] = {}
        self._waiting: dict[str, int] = {}

    @property
    def left_out(self) -> int:
        """How many resources are not asked for."""
        return sum(not size for size in self._suspects.values())

    def split(self, resources: Iterable[str]) -> list[list[str]]:
        """Return the pages of a round."""
        by_size: dict[int, list[str]] = {}
        last = len(self._waiting)
        for resource in sorted(resources, key=lambda one: self._waiting.get(one, last)):
            size = self._suspects.get(resource, self.size)
            if size:
                by_size.setdefault(size, []).append(resource)
        return [members[start:start + size] for size, members in by_size.items()
                for start in range(0, len(members), size)]

    def learn(self, answered: Sequence[list[str]], refused: Sequence[list[str]],
              not_asked: Sequence[list[str]] = ()) -> None:
        """Take note of a round's pages: those answered, those refused, and those left."""
        self._waiting = {}
        for page in not_asked:
            for resource in page:
                self._waiting[resource] = len(self._waiting)
        for page in answered:
            for resource in page:
                self._suspects.pop(resource, None)
                self._refused_alone.pop(resource, None)
        if len(refused) > max(1.0, _MOST_SUSPECT * (len(answered) + len(refused))):
            return
        for page in refused:
            size = max(1, len(page) // _SMALLER)
            if len(page) == 1:
                times = self._refused_alone.get(page[0], 0) + 1
                self._refused_alone[page[0]] = times
                size = 0 if times == _CHANCES else 1
            self._suspects.update(dict.fromkeys(page, size))

    def forgive(self) -> None:
        """Ask for all again."""
        self._suspects.clear()
        self._refused_alone.clear()


#: Answers that another attempt may change.
_PASSING = frozenset({408, 429, 500, 502, 503, 504})
_REDIRECTS = frozenset({301, 302, 303, 305, 307, 308})
_REMEDIES = {
    401: 'check the credentials',
    403: 'give the account a role that may read all projects, admin for instance',
    404: 'check that the endpoint is that of this service, without a version',
}
_SHOWN = 200
_BRIEF = reprlib.Repr()
_BRIEF.maxstring, _BRIEF.maxother = _SHOWN // 2, _SHOWN
_BRIEF.maxlevel = _BRIEF.maxdict = _BRIEF.maxlist = 3


class Unanswered(samples.TelemetryUnavailable):
    """A question to a service was not answered, or not with what was asked for.

    :param where: the service and the URL
    :param came: what came instead
    :param remedy: what to do
    :param status: of HTTP; None when none came
    :param of_this: whether the service did answer, and it is this question that it cannot do
    """

    def __init__(self, where: str, came: str, remedy: str, status: int | None = None,
                 of_this: bool = False) -> None:
        super().__init__(f'{where}: {came}: {remedy}')
        self.where = where
        self.came = came
        self.remedy = remedy
        self.status = status
        self.of_this = of_this


class _Passing(Exception):
    """Something that another attempt may change; its text says what came."""

    def __init__(self, came: str, where: str | None = None, status: int | None = None) -> None:
        super().__init__(came)
        self.where = where
        self.status = status


@dataclasses.dataclass(frozen=True)
class Timeouts:
    """How long is waited, and for how much.

    :param seconds: that an answer may take, all of it
    :param connecting: seconds until a connection stands
    :param attempts: at a question
    :param pause: seconds before the second attempt; twice as long before each further one
    :param longest_pause: seconds
    :param largest: bytes of an answer
    """

    seconds: float = 30.0
    connecting: float = 5.0
    attempts: int = 3
    pause: float = 0.5
    longest_pause: float = 10.0
    largest: int = 256 * 2**20


def plain(endpoint: str, username: str | None = None, password: str | None = None,
          verify: bool | str = True) -> ksa_adapter.Adapter:
    """Return the way to a service without Keystone.

    :param endpoint: URL, without a version
    :param username: for HTTP's basic authentication; None for no authentication
    :param verify: whether TLS certificates are checked, or a file of authorities
    """
    auth: Any = noauth.NoAuth(endpoint)
    if username is not None:
        auth = http_basic.HTTPBasicAuth(endpoint, username, password or '')
    return ksa_adapter.Adapter(ksa_session.Session(auth, verify=verify),
                               endpoint_override=endpoint)


class Service:
    """A service, and the way to it.

    :param adapter: of keystoneauth1: :func:`plain`, or a session of Keystone's with a service type
    :param name: what an operator calls it
    """

    def __init__(self, adapter: ksa_adapter.Adapter, name: str, patience: Timeouts = Timeouts(),
                 sleep: Callable[[float], None] = time.sleep) -> None:
        self.name = name
        self.patience = patience
        self._adapter = adapter
        self._sleep = sleep
        self._root = _bare(adapter.endpoint_override)

    def ask(self, method: str, path: str, params: Mapping[str, Any] | None = None,
            body: Any = None, within: float = math.inf) -> Any:
        """Return the answer, decoded.

        :param within: seconds that all attempts together may take, about
        :raises Unanswered: after the last attempt, or the first that no other can change
        """
        pause = self.patience.pause
        end = time.monotonic() + within
        for attempt in range(1, self.patience.attempts + 1):
            try:
                # At least the first one gets some time.
                left = max(end - time.monotonic(), 1.0)
                return self._attempt(method, path, params, body, left)
            except _Passing as failure:
                if attempt == self.patience.attempts or time.monotonic() + pause >= end:
                    raise Unanswered(
                        failure.where or self.where(path), f'{failure}; attempts: {attempt}',
                        'see whether it runs, its log, and how busy it is', failure.status,
                        failure.status == 500) from failure
            # Those who failed together shall not try again together.
            self._sleep(min(pause, self.patience.longest_pause) * random.uniform(0.5, 1.0))
            pause *= 2
        raise AssertionError('unreachable')

    def unusable(self, path: str, came: object, remedy: str) -> Unanswered:
        """Return the error of an answer in JSON that is not what was asked for."""
        return Unanswered(self.where(path), f'came {_BRIEF.repr(came)}', remedy, 200, True)

    def _attempt(self, method: str, path: str, params: Mapping[str, Any] | None, body: Any,
                 left: float) -> Any:
        seconds = min(self.patience.seconds, left)
        deadline = time.monotonic() + seconds
        # One that is sent on to another host would take its token there.
        sent: dict[str, Any] = {
            'headers': {'Accept': 'application/json'}, 'params': params, 'stream': True,
            'redirect': False, 'raise_exc': False, 'log': False, 'connect_retries': 0,
            'timeout': (min(self.patience.connecting, seconds), seconds)}
        if body is not None:
            sent['json'] = body
        try:
            response = self._adapter.request(path, method, **sent)
        except ksa_exceptions.RetriableConnectionFailure as error:
            raise _Passing(_first_line(error)) from error
        except ksa_exceptions.ClientException as error:
            remedy = 'check the endpoint and the certificates'
            if not isinstance(error, ksa_exceptions.ConnectionError):
                remedy = 'check the credentials, and that the catalogue has this service'
            raise Unanswered(self.where(path), _first_line(error), remedy) from error
        url = _bare(response.url)
        where = f'{self.name} at {url}'
        # The catalogue knew it, and is not asked once more when something is wrong.
        self._root = url.removesuffix(path.lstrip('/'))
        with response:
            content = self._content(response, where, seconds, deadline)
        status = response.status_code
        if status in _REDIRECTS:
            raise Unanswered(where, f'was sent on to {_bare(response.headers.get("Location"))}',
                             'state that as the endpoint if it is the service', status)
        if status in _PASSING:
            raise _Passing(f'{status} came with {_shown(content)}', where, status)
        if status != 200:
            raise Unanswered(where, f'{status} came with {_shown(content)}',
                             _REMEDIES.get(status, 'see its log'), status,
                             status in (400, 404, 422))
        return _decoded(where, content)

    def _content(self, response: requests.Response, where: str, seconds: float,
                 deadline: float) -> bytes:
        """Read the body piece by piece: no timeout of a socket ends one that only drips."""
        content = bytearray()
        try:
            while piece := response.raw.read1(2**20, decode_content=True):
                content += piece
                if len(content) > self.patience.largest:
                    raise Unanswered(where, f'more than {self.patience.largest} bytes came',
                                     'ask for less at once, by a smaller page')
                if time.monotonic() > deadline:
                    raise _Passing(f'only a part came in {seconds:g} s', where)
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise _Passing(f'only a part came: {_first_line(error)}', where) from error
        return bytes(content)

    def where(self, path: str) -> str:
        """Name the service and the URL."""
        return f'{self.name} at {self._root.rstrip("/")}/{path.lstrip("/")}'


def _decoded(where: str, content: bytes) -> Any:
    if not content.strip():
        raise _Passing('200 came with an empty body', where, 200)
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        came = 'HTML' if content.lstrip()[:1] == b'<' else 'what is no JSON'
        raise Unanswered(
            where, f'200 came with {came}: {_shown(content)}',
            'check that the endpoint is that of this service, and no proxy\'s or dashboard\'s',
            200) from error


def _bare(url: str | None) -> str:
    """Return a URL without what may be secret in it: a user, a password, a query."""
    try:
        parts = urllib.parse.urlsplit(url or '')
    except ValueError:
        return 'an invalid URL'
    return urllib.parse.urlunsplit((parts.scheme, parts.netloc.rpartition('@')[2], parts.path,
                                    '', ''))


def _first_line(error: BaseException) -> str:
    text = str(error).strip().split('\n')[0] or type(error).__name__
    # Of layers of errors about a connection the innermost says why.
    cause = re.search(r'\[Errno -?\d+\] [^\'")]+', text)
    if cause:
        return f'no connection: {cause[0]}'
    # keystoneauth1 quotes the URL as it was given.
    return re.sub(r'//[^/@\s]*@', '//', text)[:_SHOWN]


def _shown(content: bytes) -> str:
    if not content.strip():
        return 'an empty body'
    text = ' '.join(content[:_SHOWN * 2].decode('utf-8', 'replace').split())
    return repr(text[:_SHOWN])
