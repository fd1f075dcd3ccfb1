"""The verdict on one network; its function is `brittle.audit` as well."""

from brittle.auditing.budget import Budget
from brittle.auditing.change import Change, Measure, changed
from brittle.auditing.costs import gradient_work
from brittle.auditing.curve import Curve, CurvePoint
from brittle.auditing.forecast import Forecast
from brittle.auditing.found import Audit
from brittle.auditing.mechanisms import Mechanism
from brittle.auditing.plan import Plan
from brittle.auditing.proofs import certifiable
from brittle.auditing.remedies import PARTS
from brittle.auditing.remedy import Made, Patient, Remedy, Signs
from brittle.auditing.run import audit, planned
from brittle.auditing.treatment import Treatment

__all__ = [
    "PARTS",
    "Audit",
    "Budget",
    "Change",
    "Curve",
    "CurvePoint",
    "Forecast",
    "Made",
    "Measure",
    "Mechanism",
    "Patient",
    "Plan",
    "Remedy",
    "Signs",
    "Treatment",
    "audit",
    "certifiable",
    "changed",
    "gradient_work",
    "planned",
]
