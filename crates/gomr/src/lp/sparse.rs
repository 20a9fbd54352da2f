//! Vectors of which few entries are not zero.

/// A dense vector that remembers which entries were touched.
#[derive(Clone, Debug, Default)]
pub(crate) struct SparseVector {
    pub values: Vec<f64>,
    pub touched: Vec<u32>,
    seen: Vec<bool>,
}

impl SparseVector {
    pub fn resize(&mut self, len: usize) {
        self.values.resize(len, 0.0);
        self.seen.resize(len, false);
    }

    pub fn clear(&mut self) {
        if self.is_dense() {
            self.values.fill(0.0);
            self.seen.fill(false);
            self.touched.clear();
            return;
        }
        for &i in &self.touched {
            self.values[i as usize] = 0.0;
            self.seen[i as usize] = false;
        }
        self.touched.clear();
    }

    /// Counts all entries as touched.
    pub fn touch_all(&mut self) {
        for (i, seen) in self.seen.iter_mut().enumerate() {
            if !std::mem::replace(seen, true) {
                self.touched.push(i as u32);
            }
        }
    }

    /// Whether all entries count as touched: then `values` is the quicker way to go through them.
    pub fn is_dense(&self) -> bool {
        self.touched.len() == self.values.len()
    }

    pub fn add(&mut self, i: u32, value: f64) {
        if !self.seen[i as usize] {
            self.seen[i as usize] = true;
            self.touched.push(i);
        }
        self.values[i as usize] += value;
    }
}
