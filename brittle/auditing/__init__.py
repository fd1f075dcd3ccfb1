"""The verdict on one network; its function is `brittle.audit` as well."""

from brittle.auditing.budget import Budget
from brittle.auditing.remedies import PARTS, Patient, Remedy
from brittle.auditing.run import Audit, audit
from brittle.auditing.treatment import Treatment
from brittle.auditing.vulnerability import certifiable

__all__ = ["PARTS", "Audit", "Budget", "Patient", "Remedy", "Treatment", "audit", "certifiable"]
