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

"""Audits by Watcher's real decision engine, on a model collected from a real Nova."""

from __future__ import annotations

from tests.functional.watcher import base
from tracon_watcher.placement import limits


class AuditTestCase(base.WatcherTestCase):
    """What an audit recommends, and what not."""

    def test_recommends_the_migration_that_ends_a_slowdown_and_it_does(self) -> None:
        victim, culprit = self.boot('host1'), self.boot('host1')
        other = self.boot('host2')
        self.write_snapshot({victim: base.LIGHT, culprit: base.HEAVY, other: base.HEAVY},
                            {victim: limits.Limits(max_slowdown=1.2)})
        outcome = self.box.audit()
        print(outcome)
        self.assertEqual('SUCCEEDED', outcome.state)
        self.assertEqual('RECOMMENDED', outcome.plan_state)
