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

"""At most one engine leads at a time, judged by monotonic clocks alone.

A leader counts its *own* lease from the moment before it asked the database to renew it. A
candidate counts from the moment after it saw the beat change, and takes over when it has not
changed for longer than that. Whenever the candidate's time is up, the leader's is, whatever their
wall clocks say, however slow the database was, and also when the answer to a renewal got lost. The
candidate waits a little longer than a lease lasts, for clocks that do not run equally fast.

A process that was stopped meanwhile may still believe, for the instant until it looks at its
clock, that it leads: what it writes then is refused by the fence
(:func:`tracon_watcher.engine.storage.lease.fence`), and what it publishes bears an old epoch.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import Callable

from tracon_watcher.engine.storage import errors
from tracon_watcher.engine.storage import lease as leases

LOG = logging.getLogger(__name__)
#: Calls of :meth:`Leadership.poll` in one lease, for a leader that misses none.
POLLS = 4
# How much longer than a lease a candidate waits.
_MARGIN = 1.1


class Leadership:
    """Becomes the leader when there is none, and stops being it in time.

    One thread calls :meth:`poll`; any may ask :attr:`leading` and :meth:`term`.

    :param holder: name of this process, and of no other there was or will be: with something
        random in it
    :param seconds: a lease lasts
    :param clock: seconds, never put back nor forward
    """

    def __init__(self, lease: leases.Lease, holder: str, seconds: float,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self.holder = holder
        self.seconds = seconds
        self._lease = lease
        self._clock = clock
        self._lock = threading.Lock()
        self._term: leases.Term | None = None
        self._until = 0.0
        self._seen: leases.Sight | None = None
        self._seen_at = 0.0
        self._failed = False

    @property
    def interval(self) -> float:
        """Seconds between two calls of :meth:`poll`."""
        return self.seconds / POLLS

    @property
    def leading(self) -> bool:
        """Whether this process leads now."""
        return self._current() is not None

    def term(self) -> leases.Term:
        """Return the term of this process, for what only a leader may do.

        :raises errors.NoLongerLeader: when it does not lead
        """
        found = self._current()
        if found is None:
            raise errors.NoLongerLeader(self._term.epoch if self._term else 0)
        return found

    def poll(self) -> bool:
        """Renew the lease, or try to get it, and return whether this process leads.

        A database that does not answer is not an error here: it is logged, once, and the lease
        runs out by itself.
        """
        began = self._clock()
        current = self._current()
        try:
            if current is not None:
                self._renew(current, began)
            else:
                self._stand(began)
        except errors.StorageFailed as error:
            LOG.log(logging.DEBUG if self._failed else logging.WARNING,
                    'The lease of the leader could not be %s: %s',
                    'renewed' if current else 'asked for', error)
            self._failed = True
        else:
            if self._failed:
                LOG.info('The database answers again: the lease of the leader is %s',
                         'renewed' if current else 'asked for')
            self._failed = False
        return self.leading

    def resign(self) -> None:
        """Stop leading at once, so that another engine need not wait."""
        with self._lock:
            term, self._term = self._term, None
        if term is None:
            return
        try:
            self._lease.release(term)
        except (errors.NoLongerLeader, errors.StorageFailed) as error:
            LOG.info('The lease was not given back: %s', error)

    def _current(self) -> leases.Term | None:
        with self._lock:
            return self._term if self._term and self._clock() < self._until else None

    def _renew(self, term: leases.Term, began: float) -> None:
        try:
            self._lease.renew(term)
        except errors.NoLongerLeader as error:
            LOG.warning('%s', error)
            self._begin(None, 0.0)
        else:
            self._begin(term, began + self.seconds)

    def _stand(self, began: float) -> None:
        with self._lock:
            lost, self._term = self._term, None
        if lost:
            LOG.warning('Epoch %d: the lease ran out, since it could not be renewed for %s '
                        'seconds; this engine does not lead any more', lost.epoch, self.seconds)
        sight = self._lease.look()
        now = self._clock()
        if self._seen is None or (sight.epoch, sight.beat) != (self._seen.epoch, self._seen.beat):
            self._seen, self._seen_at = sight, now
        # No other engine can lead in this engine's name.
        free = sight.holder is None or sight.holder == self.holder
        if not free and now - self._seen_at < self.seconds * _MARGIN:
            return
        # The row is as it was seen, or else it is not taken; what is asked for begins to count
        # before it is asked for.
        asked = self._clock()
        term = self._lease.take(sight, self.holder)
        if term is not None:
            LOG.info('Epoch %d begins: this engine (%s) leads; before it %s', term.epoch,
                     self.holder, sight.holder or 'none')
            self._begin(term, asked + self.seconds)

    def _begin(self, term: leases.Term | None, until: float) -> None:
        with self._lock:
            self._term, self._until = term, until
