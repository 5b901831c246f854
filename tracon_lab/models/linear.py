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

"""LM, TRACON's linear model."""

from __future__ import annotations

from tracon_lab.models import nonlinear


class StepwiseLinear(nonlinear.StepwiseQuadratic):
    """Linear in the features, chosen stepwise by AIC (Chiang & Huang, TRACON, SC'11, eq. 1).

    Parameters and fitted attributes are those of :class:`.nonlinear.StepwiseQuadratic`; the
    terms are those of degree 1.
    """

    _degree = 1
