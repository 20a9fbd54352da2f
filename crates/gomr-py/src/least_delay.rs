//! `gomr::LeastDelayTrees` for Python.

use ::gomr::{DelayArc, LeastDelayTrees as Inner};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;

#[pyclass(module = "gomr._native")]
pub struct LeastDelayTrees {
    inner: Inner,
    nodes: u32,
    arcs: u32,
}

#[pymethods]
impl LeastDelayTrees {
    #[new]
    fn new(nodes: u32, arcs: Vec<(u32, u32, u64)>) -> PyResult<Self> {
        if arcs
            .iter()
            .any(|&(tail, head, _)| tail >= nodes || head >= nodes)
        {
            return Err(PyValueError::new_err("an arc has a node that is not there"));
        }
        let count =
            u32::try_from(arcs.len()).map_err(|_| PyValueError::new_err("too many arcs"))?;
        let arcs = arcs
            .into_iter()
            .map(|(tail, head, delay_ns)| DelayArc {
                tail,
                head,
                delay_ns,
            })
            .collect();
        Ok(Self {
            inner: Inner::new(nodes as usize, arcs),
            nodes,
            arcs: count,
        })
    }

    fn set_up(&mut self, arc: u32, up: bool) -> PyResult<Vec<u32>> {
        if arc >= self.arcs {
            return Err(PyIndexError::new_err("there is no such arc"));
        }
        Ok(self.inner.set_up(arc, up))
    }

    fn towards(&mut self, root: u32) -> PyResult<Vec<Option<u32>>> {
        if root >= self.nodes {
            return Err(PyIndexError::new_err("there is no such node"));
        }
        Ok(self.inner.towards(root).collect())
    }
}
