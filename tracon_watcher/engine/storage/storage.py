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

"""The door to all that is stored."""

from __future__ import annotations

from typing import Any

from tracon_watcher.engine import cooldown
from tracon_watcher.engine import outcomes as judgement
from tracon_watcher.engine.storage import audits
from tracon_watcher.engine.storage import breaches
from tracon_watcher.engine.storage import cooldowns
from tracon_watcher.engine.storage import database as databases
from tracon_watcher.engine.storage import decisions
from tracon_watcher.engine.storage import kinds
from tracon_watcher.engine.storage import learnt
from tracon_watcher.engine.storage import lease
from tracon_watcher.engine.storage import moves
from tracon_watcher.engine.storage import outcomes
from tracon_watcher.engine.storage import purge
from tracon_watcher.engine.storage import schema
from tracon_watcher.placement import plan


class Storage:
    """One database, of which each part has a name: ``storage.decisions.find(vm=…)``.

    Threads may share it, and a process may fork with it.

    :param cooldown_rule: how long a VM stays after a move
    :param backoff: how long a kind of moves that does not help is suspended
    :param move_cost: gain, in exponents, from which on a move helped
    """

    def __init__(self, database: databases.Database,
                 cooldown_rule: cooldown.Rule = cooldown.Rule(),
                 backoff: judgement.Backoff = judgement.Backoff(),
                 move_cost: float = plan.Parameters().migration_cost) -> None:
        self.database = database
        self.lease = lease.Lease(database)
        self.decisions = decisions.Decisions(database)
        self.audits = audits.Audits(database)
        self.breaches = breaches.Breaches(database)
        self.cooldowns = cooldowns.Cooldowns(database, cooldown_rule)
        self.moves = moves.Moves(database, cooldown_rule)
        self.outcomes = outcomes.Outcomes(database, move_cost, backoff)
        self.kinds = kinds.Kinds(database)
        self.learnt = learnt.LearntValues(database)

    @classmethod
    def open(cls, connection: str, **options: Any) -> Storage:
        """Return the storage at an address, after its schema was found to be right.

        :param connection: as SQLAlchemy writes it
        :param options: of oslo.db, by name
        :raises errors.SchemaOutOfDate: when ``tracon db upgrade`` has to be run
        :raises errors.StorageUnavailable: when the database does not answer
        :raises tracon_watcher.errors.InvalidOption: when the address is not one
        """
        database = databases.Database(connection, **options)
        schema.check(database)
        return cls(database)

    def purge(self, keep: purge.Keep, now: float, trusted: bool = False) -> dict[str, int]:
        """Delete what is older than is to be kept, and return how many rows of each table went.

        :param now: seconds since the epoch
        :param trusted: whether an operator has looked at that clock (:func:`purge.purge`)
        """
        return purge.purge(self.database, keep, now, trusted)

    def close(self) -> None:
        """Close all connections."""
        self.database.close()
