"""The verdict on one network; its function is `brittle.audit` as well."""

from brittle.auditing.budget import WorkBudget
from brittle.auditing.change import Change, Measure, compare_audits
from brittle.auditing.costs import AuditPlan, gradient_work
from brittle.auditing.curve import CurvePoint, TradeoffCurve
from brittle.auditing.found import Audit, Mechanism
from brittle.auditing.proofs import certifiable
from brittle.auditing.remedies import PARTS
from brittle.auditing.remedy import Diagnostics, Forecast, Remedy, RemedyContext, RemedyOutput
from brittle.auditing.run import audit, plan_audit
from brittle.auditing.treatment import RemedyResult

__all__ = [
    "PARTS",
    "Audit",
    "AuditPlan",
    "Change",
    "CurvePoint",
    "Diagnostics",
    "Forecast",
    "Measure",
    "Mechanism",
    "Remedy",
    "RemedyContext",
    "RemedyOutput",
    "RemedyResult",
    "TradeoffCurve",
    "WorkBudget",
    "audit",
    "certifiable",
    "compare_audits",
    "gradient_work",
    "plan_audit",
]
