"""From the bytes that a source publishes to the registered file: headers added, columns selected.

A recipe only rewrites; whether the result is right is decided by the registered checksum, and a download that
does not match it is refused. Adult, German credit and Communities follow the published forms; for COMPAS the
serialization of numbers is assumed to be that of pandas.
"""

from __future__ import annotations

import io
from collections.abc import Callable

import pandas as pd

__all__ = ["Recipe", "adult", "communities", "compas", "german"]

Recipe = Callable[[bytes], bytes]

_ADULT = (
    "age,workclass,fnlwgt,education,educational-num,marital-status,occupation,relationship,race,gender,"
    "capital-gain,capital-loss,hours-per-week,native-country,income"
)
_GERMAN = (
    "STATUS_ACCOUNT DURATION_MONTHS CREDIT_HISTORY PURPOSE AMOUNT BONDS EMPLOYMENT INSTALLMENT_RATE "
    "PERSONAL_STATUS_AND_SEX OTHER_DEBTORS PRESENT_RESIDENCE_SINCE PROPERTY AGE INSTALLMENT_PLANS HOUSING "
    "NUMBER_OF_CREDIT_CARDS JOB LIABLE_PEOPLE TELEPHONE FOREIGN CLASSIFICATION"
)
_COMPAS = (
    "sex,age,age_cat,race,juv_fel_count,juv_misd_count,juv_other_count,priors_count,days_b_screening_arrest,"
    "c_charge_degree,is_recid,decile_score,score_text,two_year_recid"
)
_COMMUNITIES = (
    "state,county,community,communityname,fold,population,householdsize,racepctblack,"
    "racePctWhite,racePctAsian,racePctHisp,agePct12t21,agePct12t29,agePct16t24,agePct65up,"
    "numbUrban,pctUrban,medIncome,pctWWage,pctWFarmSelf,pctWInvInc,pctWSocSec,pctWPubAsst,"
    "pctWRetire,medFamInc,perCapInc,whitePerCap,blackPerCap,indianPerCap,AsianPerCap,OtherPerCap,"
    "HispPerCap,NumUnderPov,PctPopUnderPov,PctLess9thGrade,PctNotHSGrad,PctBSorMore,PctUnemployed,"
    "PctEmploy,PctEmplManu,PctEmplProfServ,PctOccupManu,PctOccupMgmtProf,MalePctDivorce,"
    "MalePctNevMarr,FemalePctDiv,TotalPctDiv,PersPerFam,PctFam2Par,PctKids2Par,PctYoungKids2Par,"
    "PctTeen2Par,PctWorkMomYoungKids,PctWorkMom,NumIlleg,PctIlleg,NumImmig,PctImmigRecent,"
    "PctImmigRec5,PctImmigRec8,PctImmigRec10,PctRecentImmig,PctRecImmig5,PctRecImmig8,"
    "PctRecImmig10,PctSpeakEnglOnly,PctNotSpeakEnglWell,PctLargHouseFam,PctLargHouseOccup,"
    "PersPerOccupHous,PersPerOwnOccHous,PersPerRentOccHous,PctPersOwnOccup,PctPersDenseHous,"
    "PctHousLess3BR,MedNumBR,HousVacant,PctHousOccup,PctHousOwnOcc,PctVacantBoarded,PctVacMore6Mos,"
    "MedYrHousBuilt,PctHousNoPhone,PctWOFullPlumb,OwnOccLowQuart,OwnOccMedVal,OwnOccHiQuart,"
    "RentLowQ,RentMedian,RentHighQ,MedRent,MedRentPctHousInc,MedOwnCostPctInc,"
    "MedOwnCostPctIncNoMtg,NumInShelters,NumStreet,PctForeignBorn,PctBornSameState,PctSameHouse85,"
    "PctSameCity85,PctSameState85,LemasSwornFT,LemasSwFTPerPop,LemasSwFTFieldOps,"
    "LemasSwFTFieldPerPop,LemasTotalReq,LemasTotReqPerPop,PolicReqPerOffic,PolicPerPop,"
    "RacialMatchCommPol,PctPolicWhite,PctPolicBlack,PctPolicHisp,PctPolicAsian,PctPolicMinor,"
    "OfficAssgnDrugUnits,NumKindsDrugsSeiz,PolicAveOTWorked,LandArea,PopDens,PctUsePubTrans,"
    "PolicCars,PolicOperBudg,LemasPctPolicOnPatr,LemasGangUnitDeploy,LemasPctOfficDrugUn,"
    "PolicBudgPerPop,ViolentCrimesPerPop"
)


def adult(raw: bytes) -> bytes:
    """Drop the comment and blank lines of `adult.data` or `adult.test`, pack the separators, add a header."""
    lines = [line for line in raw.decode("ascii").splitlines() if line and not line.startswith("|")]
    return _with_header(_ADULT, [line.replace(", ", ",") for line in lines])


def communities(raw: bytes) -> bytes:
    """Add a header to `communities.data`."""
    return _with_header(_COMMUNITIES, raw.decode("ascii").splitlines())


def german(raw: bytes) -> bytes:
    """Add a header to `german.data` and write the class as 1 good, 0 bad (the source has 1 good, 2 bad)."""
    lines = [line.rstrip() for line in raw.decode("ascii").splitlines()]
    return _with_header(_GERMAN, [line[:-1] + "0" if line.endswith(" 2") else line for line in lines])


def compas(raw: bytes) -> bytes:
    """Keep fourteen columns of `compas-scores-two-years.csv`, without names, birth dates and case numbers."""
    frame = pd.read_csv(io.BytesIO(raw), low_memory=False)
    return frame[_COMPAS.split(",")].to_csv(index=False, lineterminator="\n").encode()


def _with_header(header: str, lines: list[str]) -> bytes:
    """Return the lines under a header, each ended by a newline."""
    return ("\n".join([header, *lines]) + "\n").encode("ascii")
