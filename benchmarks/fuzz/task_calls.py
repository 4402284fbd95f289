def groups(): return {}
