"""Kernels as names and numbers, for files that are read without pickle."""

import json

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF
from tables import KERNELS

import muhat as mh
from muhat.kernels import decode_kernel, encode_kernel


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_as_names_and_numbers(name):
    assert decode_kernel(encode_kernel(KERNELS[name])) == KERNELS[name]


def test_kernels_of_numpy_numbers():
    kernel = mh.Polynomial(np.int64(2), np.float32(0.5)) + mh.Gaussian(np.float64(1.5))
    assert decode_kernel(json.loads(json.dumps(encode_kernel(kernel)))) == kernel
    assert mh.Nystroem(kernel, 5, random_state=0).fit(np.eye(6)).fingerprint_


def test_kernels_of_functions_have_no_numbers():
    assert encode_kernel(mh.as_kernel(RBF(1.0))) is None
    assert encode_kernel(mh.Linear() + 2.0 * mh.as_kernel(RBF(1.0))) is None
