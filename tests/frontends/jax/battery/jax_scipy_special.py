"""jax.scipy.special and jax.scipy.stats."""

import jax.numpy as jnp
from jax.scipy import special, stats
from jax_cases import case, cases

cases(
    "f32[9] 0.1..5",
    gammaln=special.gammaln,
    gamma=special.gamma,
    digamma=special.digamma,
    psi_of_sums=lambda x: special.digamma(x) - special.digamma(x.sum()),
    log_factorial=lambda x: special.gammaln(x + 1),
    factorial=lambda x: special.factorial(jnp.floor(x)),
    entr=special.entr,
    i0=special.i0,
    i0e=special.i0e,
    i1=special.i1,
    i1e=special.i1e,
    exp1=special.exp1,
    expi=special.expi,
    expn=lambda x: special.expn(2, x),
    poch=lambda x: special.poch(x, 2.0),
    polygamma_2=lambda x: special.polygamma(2, x),
    zeta_of=lambda x: special.zeta(x + 1.5, 1.0),
    betaln_fixed=lambda x: special.betaln(x, 2.0),
    spence=special.spence,
    erfcx_like=lambda x: jnp.exp(x * x / 9) * special.erfc(x / 3),
    bernoulli_numbers=lambda x: x[:7] * special.bernoulli(6),
    multigammaln=lambda x: special.multigammaln(x + 2, 3),
    gammasgn=special.gammasgn,
)
cases(
    "f32[9]",
    erf=special.erf,
    erfc=special.erfc,
    expit=special.expit,
    ndtr=special.ndtr,
    log_ndtr=lambda x: special.log_ndtr(jnp.clip(x, -20, 20)),
    logsumexp=special.logsumexp,
    log_softmax=lambda x: special.log_softmax(jnp.clip(x, -9, 9)),
    softmax=lambda x: special.softmax(jnp.clip(x, -9, 9)),
    xlogy=lambda x: special.xlogy(x, jnp.abs(x) + 1),
    xlog1py=lambda x: special.xlog1py(x, jnp.abs(x)),
)
cases(
    "f32[9] 0.02..0.98",
    logit=special.logit,
    ndtri=special.ndtri,
    erfinv=special.erfinv,
    binary_entropy=lambda p: special.entr(p) + special.entr(1 - p),
)
cases(
    "f32[7] 0.2..4",
    "f32[7] 0.2..4",
    beta=special.beta,
    betaln=special.betaln,
    gammainc=special.gammainc,
    gammaincc=special.gammaincc,
    kl_div=special.kl_div,
    rel_entr=special.rel_entr,
    betainc=lambda a, b: special.betainc(a, b, 0.3),
    hyp1f1=lambda a, b: special.hyp1f1(a, b + 1, 0.5),
    norm_pdf=stats.norm.pdf,
    norm_logpdf=lambda x, s: stats.norm.logpdf(x, 1.0, s),
    norm_cdf=lambda x, s: stats.norm.cdf(x, 1.0, s),
    norm_logcdf=stats.norm.logcdf,
    norm_sf=stats.norm.sf,
    gamma_logpdf=stats.gamma.logpdf,
    gamma_cdf=stats.gamma.cdf,
    expon_pdf=lambda x, s: stats.expon.pdf(x, scale=s),
    laplace_pdf=stats.laplace.pdf,
    laplace_cdf=stats.laplace.cdf,
    logistic_cdf=stats.logistic.cdf,
    logistic_logpdf=stats.logistic.logpdf,
    cauchy_pdf=stats.cauchy.pdf,
    cauchy_cdf=stats.cauchy.cdf,
    t_logpdf=stats.t.logpdf,
    chi2_logpdf=stats.chi2.logpdf,
    chi2_cdf=stats.chi2.cdf,
    uniform_pdf=lambda x, s: stats.uniform.pdf(x, 0.5, s),
    pareto_logpdf=lambda x, s: stats.pareto.logpdf(x + 1, s),
    gumbel_logpdf=stats.gumbel_r.logpdf,
)
cases(
    "i32[7] 0..6",
    poisson_logpmf=lambda k: stats.poisson.logpmf(k, 2.5),
    poisson_pmf=lambda k: stats.poisson.pmf(k, 2.5),
    poisson_cdf=lambda k: stats.poisson.cdf(k, 2.5),
    binomial_logpmf=lambda k: stats.binom.logpmf(k, 6, 0.3),
    geometric_pmf=lambda k: stats.geom.pmf(k, 0.3),
    bernoulli_pmf=lambda k: stats.bernoulli.pmf(k % 2, 0.3),
    negative_binomial=lambda k: stats.nbinom.logpmf(k, 3.0, 0.4),
)


@case("f32[7] 0.02..0.98")
def beta_distribution(x):
    return stats.beta.logpdf(x, 2.0, 3.0), stats.beta.pdf(x, 0.5, 0.5), stats.beta.cdf(x, 2.0, 3.0)


@case("f32[7] 0.02..0.98")
def quantiles_of_normal(p):
    return stats.norm.ppf(p), stats.norm.ppf(p, 1.0, 2.0), stats.norm.isf(p)


@case("f32[4,3] plain")
def multivariate_normal(x):
    covariance = jnp.array([[2.0, 0.3, 0.0], [0.3, 1.0, 0.2], [0.0, 0.2, 1.5]])
    return stats.multivariate_normal.logpdf(x, jnp.zeros(3), covariance)


@case("f32[3] 0.5..4")
def dirichlet(alpha):
    return stats.dirichlet.logpdf(jnp.array([0.2, 0.5, 0.3]), alpha)


@case("f32[5] plain")
def truncated_normal_density(x):
    return stats.truncnorm.logpdf(jnp.clip(x, -1.4, 1.4), -1.5, 1.5)


@case("f32[12] plain", "f32[5] plain")
def kernel_density(samples, points):
    return stats.gaussian_kde(samples + jnp.arange(12.0))(points)


@case("f32[9] plain")
def rank_of_data(x):
    return stats.rankdata(x)


@case("i32[9] 0..4")
def most_common(x):
    return stats.mode(x)


@case("f32[3,4] plain")
def standard_error(x):
    return stats.sem(x, axis=1)
