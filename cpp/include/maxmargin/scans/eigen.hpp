// Eigenvalues and eigenvectors of symmetric 3 x 3 matrices by Jacobi rotations.
#pragma once

#include <array>
#include <cmath>
#include <utility>

namespace maxmargin::scans {

struct Eigen3 {
    std::array<double, 3> values;                  // falling
    std::array<std::array<double, 3>, 3> vectors;  // vectors[k] belongs to values[k]
};

// The matrix is given by its entries xx, xy, xz, yy, yz, zz. Rotations in a fixed order converge quadratically; a
// handful of sweeps reaches machine precision for any symmetric matrix, also with equal eigenvalues.
inline Eigen3 eigen3(const std::array<double, 6>& m) {
    double a[3][3] = {{m[0], m[1], m[2]}, {m[1], m[3], m[4]}, {m[2], m[4], m[5]}};
    double v[3][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    for (int sweep = 0; sweep < 12; ++sweep) {
        const double off = a[0][1] * a[0][1] + a[0][2] * a[0][2] + a[1][2] * a[1][2];
        const double on = a[0][0] * a[0][0] + a[1][1] * a[1][1] + a[2][2] * a[2][2];
        if (!(off > 1e-28 * on)) break;
        for (int p = 0; p < 2; ++p) {
            for (int q = p + 1; q < 3; ++q) {
                if (a[p][q] == 0.0) continue;
                const double theta = (a[q][q] - a[p][p]) / (2.0 * a[p][q]);
                const double t = (theta < 0 ? -1.0 : 1.0) / (std::abs(theta) + std::sqrt(theta * theta + 1.0));
                const double c = 1.0 / std::sqrt(t * t + 1.0), s = t * c;
                a[p][p] -= t * a[p][q];
                a[q][q] += t * a[p][q];
                a[p][q] = a[q][p] = 0.0;
                const int r = 3 - p - q;
                const double rp = a[r][p], rq = a[r][q];
                a[r][p] = a[p][r] = c * rp - s * rq;
                a[r][q] = a[q][r] = s * rp + c * rq;
                for (auto& row : v) {
                    const double vp = row[p], vq = row[q];
                    row[p] = c * vp - s * vq;
                    row[q] = s * vp + c * vq;
                }
            }
        }
    }
    std::array<int, 3> order{0, 1, 2};
    const auto sort2 = [&](int i, int j) {
        if (a[order[i]][order[i]] < a[order[j]][order[j]]) std::swap(order[i], order[j]);
    };
    sort2(0, 1);
    sort2(1, 2);
    sort2(0, 1);
    Eigen3 found;
    for (int k = 0; k < 3; ++k) {
        found.values[k] = a[order[k]][order[k]];
        for (int i = 0; i < 3; ++i) found.vectors[k][i] = v[i][order[k]];
    }
    return found;
}

}  // namespace maxmargin::scans
