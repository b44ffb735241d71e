"""Paid parts of a plan beside the tree: analyses (``[[posterior]]``) and a covariance matrix."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import Any

from core.column import require_columns
from core.errors import BudgetError, EstimationError, PlanError
from core.pace.frames import checked_means, checked_widths, covariance_schema
from core.pace.release import METHODS, CovarianceRelease
from core.plan_settings import Section
from core.private.zcdp import as_rho
from core.pumba.priors import NormalPrior
from core.pumba.settings import Settings
from core.pumba.specification import AnalysisKind, AnalysisSpec
from core.schema import Schema

_SPEC = tuple(item.name for item in fields(AnalysisSpec))
_FREE = tuple(item.name for item in fields(Settings))


@dataclass(frozen=True)
class PosteriorPlan:
    """One analysis: the question, what its statistics may cost, and how it is looked at.

    ``settings`` cost nothing and may be changed after the release.
    """

    spec: AnalysisSpec
    rho: Fraction
    settings: Settings = field(default_factory=Settings)

    def __post_init__(self) -> None:
        """Refuse settings that the analysis cannot have, before anything is paid for."""
        kind, settings = self.spec.kind, self.settings
        if settings.priors and (self.spec.counts or kind is AnalysisKind.CORRELATION):
            raise self.spec.error(
                "normal priors are for means and slopes; the prior of a table is alpha"
            )
        if settings.vcov == "hc" and not self.spec.robust:
            raise self.spec.error(
                "vcov = 'hc' needs sums of degree 3 and 4; ask for them with robust = true"
            )

    def to_dict(self) -> dict[str, Any]:
        """Plain form, without settings that are at their defaults."""
        return {**self.spec.to_dict(), "rho": str(self.rho), **settings_to(self.settings)}


@dataclass(frozen=True)
class CovariancePlan:
    """A covariance matrix: columns, price, method, and what is public about them.

    Attributes
    ----------
    columns
        Names of integer, real or date columns.
    method
        One of ``core.pace.release.METHODS``.
    means
        Public means by column, all or none; without them noisy means are measured first.
    half_widths
        Public half-widths by column, where values mostly lie much closer to their mean than the
        bounds allow; values beyond are clipped.
    """

    columns: tuple[str, ...]
    rho: Fraction
    method: str = "pace_auto"
    means: Mapping[str, float] = field(default_factory=dict)
    half_widths: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse unknown methods and repeated columns."""
        if self.method not in METHODS:
            raise PlanError(f"covariance: method must be one of {', '.join(METHODS)}")
        if not self.columns:
            raise PlanError('covariance: list its columns, for example columns = ["age", "pay"]')
        if len(set(self.columns)) != len(self.columns):
            raise PlanError("covariance: a column is listed twice; keep one")

    def check(self, schema: Schema) -> None:
        """Refuse what does not fit the declarations.

        Raises
        ------
        SchemaError, PlanError
            Unknown columns, columns without numbers, means or half-widths that do not fit.
        """
        require_columns(self.columns, schema.names)
        used = covariance_schema(schema, self.columns)
        checked_means(used, self.means_setting)
        checked_widths(used, dict(self.half_widths) or None)

    @property
    def means_setting(self) -> Any:
        """``"private"``, or the public means."""
        return dict(self.means) if self.means else "private"

    def paid(self) -> dict[str, Any]:
        """What of it is paid for, in plain form."""
        return {
            "rho": str(self.rho),
            "columns": sorted(self.columns),
            "method": self.method,
            "means": {name: repr(float(value)) for name, value in sorted(self.means.items())},
            "half_widths": {
                name: repr(float(value)) for name, value in sorted(self.half_widths.items())
            },
        }

    def describes(self, release: CovarianceRelease) -> bool:
        """Whether a release is what this asks for."""
        means = dict(zip(release.columns, release.means.values, strict=True))
        widths = {name: scale.half_width for name, scale in release.scales}
        return (
            sorted(self.columns) == sorted(release.schema.names)
            and self.method == release.method
            and release.means.public == bool(self.means)
            and all(means[name] == value for name, value in self.means.items())
            and widths == checked_widths(release.schema, dict(self.half_widths) or None)
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain form, without settings that are at their defaults."""
        plain: dict[str, Any] = {
            "rho": str(self.rho),
            "method": self.method,
            "columns": list(self.columns),
        }
        if self.means:
            plain["means"] = dict(self.means)
        if self.half_widths:
            plain["half_widths"] = dict(self.half_widths)
        return plain


def posterior_sections(plain: object) -> tuple[PosteriorPlan, ...]:
    """The sections ``[[posterior]]``.

    Raises
    ------
    PlanError
        Not a list of tables, unknown settings, or values of the wrong type.
    """
    if not isinstance(plain, list | tuple):
        raise PlanError("plan: posterior must be a list of tables, [[posterior]]")
    return tuple(_posterior_section(item) for item in plain)


def _posterior_section(plain: object) -> PosteriorPlan:
    section = Section("posterior", plain, (*_SPEC, "rho", *_FREE))
    if "rho" not in section:
        raise PlanError('posterior: say what it may cost, for example rho = "0.1"')
    spec = AnalysisSpec.from_dict({key: section.plain[key] for key in _SPEC if key in section})
    free = {key: section.plain[key] for key in _FREE if key in section}
    try:
        return PosteriorPlan(spec, section.price("rho"), settings_from(free))
    except EstimationError as error:
        raise PlanError(f"posterior {spec.name!r}: {error}") from error


def settings_from(plain: Mapping[str, Any], base: Settings | None = None) -> Settings:
    """Free settings from their plain form; what is not named stays as in ``base``.

    Raises
    ------
    PlanError
        A value of the wrong type.
    EstimationError
        A setting that no posterior can have.
    """
    base = base or Settings()
    section = Section("posterior", plain, _FREE)
    whole = {
        key: section.whole(key, least, most)
        for key, least, most in (
            ("draws", 1, 10_000_000),
            ("seed", 0, 2**63 - 1),
            ("population_size", 1, 10**12),
        )
    }
    return Settings(
        level=section.number("level", base.level),
        estimand=section.text("estimand") or base.estimand,  # type: ignore[arg-type]
        draws=base.draws if whole["draws"] is None else whole["draws"],
        seed=base.seed if whole["seed"] is None else whole["seed"],
        priors=_priors(section, base),
        alpha=section.number("alpha", base.alpha),
        vcov=section.text("vcov") or base.vcov,  # type: ignore[arg-type]
        design_effect=section.number("design_effect", base.design_effect),
        population_size=whole["population_size"] or base.population_size,
        rope=_rope(section, base),
    )


def settings_to(settings: Settings) -> dict[str, Any]:
    """Plain form of free settings that are not at their defaults."""
    plain: dict[str, Any] = {}
    usual = Settings()
    for name in _FREE:
        value = getattr(settings, name)
        if value == getattr(usual, name):
            continue
        if name == "priors":
            value = {key: {"mean": prior.mean, "sd": prior.sd} for key, prior in value.items()}
        elif name == "rope":
            value = (
                {key: list(ends) for key, ends in value.items()}
                if isinstance(value, Mapping)
                else list(value)
            )
        plain[name] = value
    return plain


def _priors(section: Section, base: Settings) -> Mapping[str, NormalPrior]:
    if "priors" not in section:
        return base.priors
    plain = section.plain["priors"]
    words = "posterior: priors gives each parameter a mean and an sd, such as {mean = 0, sd = 1}"
    if not isinstance(plain, Mapping):
        raise PlanError(words)
    found = {}
    for name, item in plain.items():
        if not isinstance(item, Mapping) or set(item) != {"mean", "sd"}:
            raise PlanError(words)
        prior = Section("posterior priors", item, ("mean", "sd"))
        found[str(name)] = NormalPrior(prior.number("mean", 0.0), prior.number("sd", 1.0))
    return found


def _rope(section: Section, base: Settings) -> Any:
    if "rope" not in section:
        return base.rope
    plain = section.plain["rope"]
    if isinstance(plain, Mapping):
        return {str(name): _ends(ends) for name, ends in plain.items()}
    return _ends(plain)


def _ends(plain: object) -> tuple[float, float]:
    ends = plain if isinstance(plain, list | tuple) else ()
    if len(ends) != 2 or any(isinstance(end, bool | str) for end in ends):
        raise PlanError("posterior: rope is two numbers, the lower one first")
    try:
        return float(ends[0]), float(ends[1])
    except (TypeError, ValueError, OverflowError) as error:
        raise PlanError("posterior: rope is two numbers, the lower one first") from error


def covariance_section(plain: object) -> CovariancePlan:
    """The section ``[covariance]``.

    Raises
    ------
    PlanError
        Unknown settings, or values of the wrong type.
    """
    section = Section("covariance", plain, ("rho", "method", "columns", "means", "half_widths"))
    if "rho" not in section:
        raise PlanError('covariance: say what it may cost, for example rho = "0.1"')
    return CovariancePlan(
        section.texts("columns", "column names"),
        section.price("rho"),
        section.text("method") or "pace_auto",
        _numbers(section, "means"),
        _numbers(section, "half_widths"),
    )


def _numbers(section: Section, key: str) -> dict[str, float]:
    plain = section.plain.get(key, {})
    if not isinstance(plain, Mapping):
        raise PlanError(f"covariance: {key} gives each column a number")
    inner = Section(f"covariance {key}", plain, tuple(str(name) for name in plain))
    return {str(name): inner.number(str(name), 0.0) for name in plain}


def typed_rho(text: str) -> Fraction:
    """A price that somebody typed.

    Raises
    ------
    BudgetError
        It is no positive number.
    """
    if not text.strip():
        raise BudgetError("type a price, such as 0.1")
    return as_rho(text.strip())
