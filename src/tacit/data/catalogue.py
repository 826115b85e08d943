"""The public data sets by record: sources, licences, checksums, and what `load` makes of them."""

from __future__ import annotations

from tacit.data import recipes
from tacit.data.info import DataFile, DatasetInfo

__all__ = ["RECORDS"]

_UCI = "https://archive.ics.uci.edu"
_UCI_FILES = f"{_UCI}/ml/machine-learning-databases"


def _idx_files(base: str, checksums: dict[str, tuple[str, ...]]) -> tuple[DataFile, ...]:
    """Return the four files of an MNIST-like set; the test files can stand in for the training files."""
    return tuple(
        DataFile(name=name, sha256=sums, url=f"{base}/{name}", required=name.startswith("t10k"))
        for name, sums in checksums.items()
    )


# For the MNIST test files the second checksum is that of the archive at this address, which holds
# the same bytes.
_MNIST_FILES = _idx_files(
    "https://storage.googleapis.com/cvdf-datasets/mnist",
    {
        "train-images-idx3-ubyte.gz": ("440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",),
        "train-labels-idx1-ubyte.gz": ("3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",),
        "t10k-images-idx3-ubyte.gz": (
            "167310007f03058885c7e95e6c0b19c20de5c7fd3031f4cbdadc9014a523d80b",
            "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        ),
        "t10k-labels-idx1-ubyte.gz": (
            "fc607395669ec21321ea83e4b82c0544b7e8e63ff5b34337c06bc0a17cc0da3c",
            "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        ),
    },
)
_FASHION_FILES = _idx_files(
    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
    {
        "train-images-idx3-ubyte.gz": ("3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",),
        "train-labels-idx1-ubyte.gz": ("a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",),
        "t10k-images-idx3-ubyte.gz": ("346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",),
        "t10k-labels-idx1-ubyte.gz": ("67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",),
    },
)
_COMMUNITIES_SENSITIVE = (
    "racepctblack", "racePctWhite", "racePctAsian", "racePctHisp", "whitePerCap", "blackPerCap",
    "indianPerCap", "AsianPerCap", "OtherPerCap", "HispPerCap", "PctSpeakEnglOnly", "PctNotSpeakEnglWell",
    "PctForeignBorn", "RacialMatchCommPol", "PctPolicWhite", "PctPolicBlack", "PctPolicHisp", "PctPolicAsian",
)  # fmt: skip

RECORDS = (
    DatasetInfo(
        name="digits",
        title="Handwritten digits, 8x8 pixels",
        source="Alpaydin and Kaynak; UCI, in scikit-learn",
        licence="CC BY 4.0",
        page=f"{_UCI}/dataset/80",
        task="classification",
        target="digit",
        rows=1797,
        n_features=64,
        embedded=True,
    ),
    DatasetInfo(
        name="digits-odd-even",
        title="Handwritten digits, 8x8 pixels, odd or even",
        source="Alpaydin and Kaynak; UCI, in scikit-learn",
        licence="CC BY 4.0",
        page=f"{_UCI}/dataset/80",
        task="classification",
        target="parity of the digit",
        rows=1797,
        n_features=64,
        embedded=True,
    ),
    DatasetInfo(
        name="breast-cancer",
        title="Breast cancer Wisconsin (diagnostic)",
        source="Wolberg, Mangasarian, Street; UCI, in scikit-learn",
        licence="CC BY 4.0",
        page=f"{_UCI}/dataset/17",
        task="classification",
        target="malignant or benign",
        rows=569,
        n_features=30,
        description="breast-cancer",
        embedded=True,
    ),
    DatasetInfo(
        name="mnist",
        title="MNIST handwritten digits, 28x28 pixels",
        source="LeCun, Cortes, Burges",
        licence="CC BY-SA 3.0",
        page="http://yann.lecun.com/exdb/mnist/",
        task="classification",
        target="digit",
        rows=70_000,
        n_features=784,
        folder="mnist",
        files=_MNIST_FILES,
    ),
    DatasetInfo(
        name="mnist-odd-even",
        title="MNIST handwritten digits, 28x28 pixels, odd or even",
        source="LeCun, Cortes, Burges",
        licence="CC BY-SA 3.0",
        page="http://yann.lecun.com/exdb/mnist/",
        task="classification",
        target="parity of the digit",
        rows=70_000,
        n_features=784,
        folder="mnist",
        files=_MNIST_FILES,
    ),
    DatasetInfo(
        name="fashion-mnist",
        title="Fashion-MNIST articles of clothing, 28x28 pixels",
        source="Zalando Research",
        licence="MIT",
        page="https://github.com/zalandoresearch/fashion-mnist",
        task="classification",
        target="kind of article",
        rows=70_000,
        n_features=784,
        folder="fashion-mnist",
        files=_FASHION_FILES,
    ),
    DatasetInfo(
        name="adult",
        title="Adult (census income)",
        source="Becker and Kohavi; UCI",
        licence="CC BY 4.0",
        page=f"{_UCI}/dataset/2",
        task="classification",
        target="income > 50K",
        sensitive=("gender", "race"),
        rows=48_842,
        n_features=59,
        folder="adult",
        files=(
            DataFile(
                name="adult.data",
                sha256=("457333a3034681520bcd9d2767a1157d82a9af42549ddbe3f4f678ef1245a081",),
                url=f"{_UCI_FILES}/adult/adult.data",
                recipe=recipes.adult,
            ),
            DataFile(
                name="adult.test",
                sha256=("6fa58b57cad798410f97867f55da28d440209ab7e66be5c3ef3c6a0b2f6ed9f4",),
                url=f"{_UCI_FILES}/adult/adult.test",
                recipe=recipes.adult,
            ),
        ),
        description="adult",
        not_features=("race", "gender", "native-country"),
    ),
    DatasetInfo(
        name="compas",
        title="COMPAS two-year recidivism",
        source="ProPublica compas-analysis",
        licence="published data",
        page="https://github.com/propublica/compas-analysis",
        task="classification",
        target="two_year_recid",
        sensitive=("race", "sex"),
        rows=5278,
        n_features=12,
        folder="compas",
        files=(
            DataFile(
                name="compas-two-years.csv",
                sha256=("e755a19e5364ca47d1564f7140bad2738b98530760d4f60ed4724a627dab98c0",),
                url="https://raw.githubusercontent.com/propublica/compas-analysis/master/"
                "compas-scores-two-years.csv",
                recipe=recipes.compas,
            ),
        ),
        description="compas",
    ),
    DatasetInfo(
        name="credit-default",
        title="Default of credit card clients",
        source="Yeh; UCI",
        licence="CC BY 4.0",
        page=f"{_UCI}/dataset/350",
        task="classification",
        target="default in the next month",
        sensitive=("sex",),
        rows=30_000,
        n_features=85,
        folder="credit-default",
        files=(
            DataFile(
                name="UCI_Credit_Card.csv",
                sha256=("023eb2c3ad9efd15e7869616fa50a0143f25223105c7069ba632431530afdb61",),
            ),
        ),
        description="credit-default",
    ),
    DatasetInfo(
        name="parkinsons",
        title="Parkinsons telemonitoring",
        source="Tsanas and Little; UCI",
        licence="CC BY 4.0",
        page=f"{_UCI}/dataset/189",
        task="classification",
        target="total_UPDRS > 27.576, its median",
        sensitive=("sex",),
        rows=5875,
        n_features=19,
        folder="parkinsons",
        files=(
            DataFile(
                name="parkinsons_updrs.data",
                sha256=("52229b3075c2109a2c144f5584d88cc5ea99022a9a9eaa6d978b2e8e7c6bc501",),
            ),
        ),
        description="parkinsons",
    ),
    DatasetInfo(
        name="german",
        title="German credit",
        source="Hofmann; UCI Statlog",
        licence="CC BY 4.0",
        page=f"{_UCI}/dataset/144",
        task="classification",
        target="good credit",
        sensitive=("gender",),
        rows=1000,
        n_features=57,
        folder="german",
        files=(
            DataFile(
                name="german.data",
                sha256=("d4d07316a7b3dd7271bb9903dd992cd7437735211f3d75db7f8e5a56c1440984",),
                url=f"{_UCI_FILES}/statlog/german/german.data",
                recipe=recipes.german,
            ),
        ),
        description="german",
    ),
    DatasetInfo(
        name="communities",
        title="Communities and crime",
        source="Redmond; UCI",
        licence="CC BY 4.0",
        page=f"{_UCI}/dataset/183",
        task="classification",
        target="ViolentCrimesPerPop, three classes cut at .09 and .25",
        sensitive=_COMMUNITIES_SENSITIVE,
        rows=1994,
        n_features=100,
        folder="communities",
        files=(
            DataFile(
                name="communities.data",
                sha256=("748b3de18ff7f09f0e357a3f2510b043a414f5c30916962eda7e3f78bbe21c07",),
                url=f"{_UCI_FILES}/communities/communities.data",
                recipe=recipes.communities,
            ),
        ),
        description="communities",
    ),
    DatasetInfo(
        name="obesity",
        title="Obesity levels by eating habits",
        source="Palechor and de la Hoz; UCI",
        licence="CC BY 4.0",
        page=f"{_UCI}/dataset/544",
        task="classification",
        target="NObeyesdad, seven levels",
        sensitive=("Gender",),
        rows=2111,
        n_features=16,
        folder="obesity",
        files=(
            DataFile(
                name="ObesityDataSet_raw_and_data_sinthetic.csv",
                sha256=("b2fbeeba9ad5da5c2a53f8c7fff2cfaa23c76d9d96912085f1b82ca9738756df",),
                url=f"{_UCI}/static/public/544/estimation+of+obesity+levels+based+on+eating+habits+and"
                "+physical+condition.zip",
                member="ObesityDataSet_raw_and_data_sinthetic.csv",
            ),
        ),
        description="obesity",
    ),
    DatasetInfo(
        name="insurance",
        title="Medical cost personal data",
        source="Lantz, Machine Learning with R",
        licence="public",
        page="https://github.com/stedy/Machine-Learning-with-R-datasets",
        task="regression",
        target="charges",
        sensitive=("sex",),
        rows=1338,
        n_features=6,
        folder="insurance",
        files=(
            DataFile(
                name="insurance.csv",
                sha256=("505c1cbc2e63d0363bac59501563df2530aadf4cdb9cfee226f4ef32f5468281",),
                url="https://raw.githubusercontent.com/stedy/Machine-Learning-with-R-datasets/"
                "9a8371e95098f3048c5540646b9fb96c7571b110/insurance.csv",
            ),
        ),
        description="insurance",
    ),
)
