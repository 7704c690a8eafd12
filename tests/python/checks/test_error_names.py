"""Columns of errors of public catalogues: each is paired with its feature, or told."""

import pytest

from halosvm.checks.error_names import look_alikes
from halosvm.files.tables.reading import PLAIN
from halosvm.files.tables.roles import find_roles

# Columns as their publishers call them: those of values, then those of errors.
CATALOGUES = {
    "SDSS PhotoObj": ("psfMag_u psfMag_g petroRad_r", "psfMagErr_u psfMagErr_g petroRadErr_r"),
    "SDSS SpecObj": ("z velDisp", "zErr velDispErr"),
    "DESI redshifts": ("TARGET_RA Z DELTACHI2", "ZERR"),
    "DESI targets": ("FLUX_G FLUX_R FLUX_W1", "FLUX_IVAR_G FLUX_IVAR_R FLUX_IVAR_W1"),
    "Legacy Surveys": ("flux_g flux_z shape_r", "flux_ivar_g flux_ivar_z shape_r_ivar"),
    "Gaia": ("ra parallax phot_g_mean_flux", "ra_error parallax_error phot_g_mean_flux_error"),
    "Gaia parameters": (
        "teff_gspphot logg_gspphot",
        "teff_gspphot_lower teff_gspphot_upper logg_gspphot_lower logg_gspphot_upper",
    ),
    "Kepler objects": (
        "koi_period koi_depth koi_fpflag_nt",
        "koi_period_err1 koi_period_err2 koi_depth_err1 koi_depth_err2",
    ),
    "exoplanet archive": (
        "pl_rade pl_radelim pl_orbper",
        "pl_radeerr1 pl_radeerr2 pl_orbpererr1 pl_orbpererr2",
    ),
    "TESS input": ("Tmag Teff rad", "e_Tmag e_Teff epos_Teff eneg_Teff e_rad"),
    "ALFALFA": ("HIflux W50 Dist logMH SNR", "sigflux sigW sigDist siglogMH"),
    "DES": (
        "MAG_AUTO_G WAVG_MAG_PSF_G SPREAD_MODEL_I",
        "MAGERR_AUTO_G WAVG_MAGERR_PSF_G SPREADERR_MODEL_I",
    ),
    "2MASS": ("j_m h_m k_m", "j_cmsig j_msigcom h_cmsig h_msigcom k_msigcom"),
    "WISE": ("w1mpro w2mpro w1snr", "w1sigmpro w2sigmpro"),
    "Pan-STARRS": (
        "raMean gMeanPSFMag gMeanKronMag",
        "raMeanErr gMeanPSFMagErr gMeanPSFMagStd gMeanKronMagErr",
    ),
    "ZTF": ("magpsf magap distnr", "sigmapsf sigmagap"),
    "UKIDSS": ("yAperMag3 eBV", "yAperMag3Err"),
    "Fermi": ("Flux1000 Pivot_Energy PL_Index", "Unc_Flux1000 Unc_PL_Index"),
    "gravitational waves": (
        "mass_1_source redshift",
        "mass_1_source_lower mass_1_source_upper redshift_lower redshift_upper",
    ),
    "galaxies by hand": (
        "B|YMag|age|mass|flux (mJy)|logmstar",
        "sigB|eYMag|age_lo|age_hi|mass_p1|mass_m1|flux_err (mJy)|dellogmstar",
    ),
    "cells": ("radius_mean texture_mean radius_worst", "radius_se texture_se"),
    "cells in words": ("mean radius|mean texture|worst radius", "radius error|texture error"),
    "quantitative PCR": ("Ct Mean|Tm1|Quantity Mean", "Ct SD|Quantity SD"),
    "proteomics": ("conc|LFQ intensity A|logFC", "sem_conc|LFQ intensity A SD|SE logFC"),
    "laboratory": ("T accel v [m/s]", "T_e accel_std"),
}


def split(text):
    return text.split("|") if "|" in text else text.split()


@pytest.mark.parametrize("name", CATALOGUES)
def test_error_columns_of_catalogues_are_paired_or_told(name):
    values, errors = map(split, CATALOGUES[name])
    roles = find_roles(
        "t",
        [*values, *errors, "kind"],
        not_features=["kind"],
        target=None,
        features=None,
        drop=(),
        rules=PLAIN.errors,
    )
    told = " ".join(roles.notes)
    for column in errors:
        assert column in told, (column, roles)
    alike = look_alikes(roles.features, [*values, *errors])
    assert set(alike) <= set(errors), "a column of values is taken for errors"
    assert set(values) <= set(roles.features)


def test_columns_of_values_are_not_taken_for_errors():
    names = "design signal sign step deep speed age page se_content sepal_width width lower_limit"
    names += " upper_limit x_1 x x_2 price_high high low open sd_count error_rate rate_of_x m p"
    columns = names.split()
    assert look_alikes(columns, columns) == {}
    pixels = [f"pixel_{i}_{j}" for i in range(8) for j in range(8)]
    assert look_alikes(pixels, pixels) == {}
