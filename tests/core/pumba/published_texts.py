"""Published statistics as texts, and what reading them gives or refuses."""

import pytest

from core.errors import JustitiaError
from core.pumba.published import read_published

TABLE = """analysis,kind,statistic,column,category,value,family,scale
t,table,count,sex,woman,60,laplace,2
t,table,count,sex,man,38,laplace,2
"""
TWO_WAY = """analysis,kind,statistic,column,category,column_2,category_2,value,family,scale,release
t,table,count,sex,w,hired,yes,10,discrete_gaussian,3,
t,table,count,sex,w,hired,no,20,discrete_gaussian,3,
t,table,count,hired,yes,sex,m,30,discrete_gaussian,3,
t,table,count,sex,m,hired,no,40,discrete_gaussian,3,
"""
MEAN = """analysis,kind,statistic,column,lower,upper,value,family,scale
m,mean,n,,,,200,exact,
m,mean,sum,x,0,1,101.5,laplace,2
m,mean,sum_squares,x,,,61,laplace,5
"""
GRAM = """analysis,kind,statistic,column,column_2,value,family,scale,lower,upper,role
r,regression,n,,,100,exact,,,,
,,sum,x,,50,gaussian,1,0,1,
,,sum_squares,x,,35,gaussian,1,,,
,,sum,y,,60,gaussian,1,0,1,outcome
,,sum_squares,y,,40,gaussian,1,,,
,,sum_product,y,x,33,gaussian,1,,,
"""


def read(text):
    return read_published(text.encode(), name="stats.csv")


def only(text):
    (analysis,) = read(text).analyses
    return analysis


def refusal(text):
    with pytest.raises(JustitiaError) as caught:
        read(text)
    words = str(caught.value)
    assert caught.value.exit_code == 2
    assert words.startswith("stats.csv")
    assert "\n" not in words
    return words
